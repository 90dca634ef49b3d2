// The search of the book: sections that have every word, best first, each with a line of what it says about them.
// It takes the place of Sphinx's list of pages; names of the reference are still found by Sphinx.
"use strict";

(() => {
  const MOST = 60;
  const BEFORE = 90; // letters of a line before the first word found, and in all
  const LINE = 260;

  const GUIDES = /^book\/(how_to_classify|ten_minutes|why_not|a_table_that_does_not_fit)/;
  const SUPPLEMENTS = /^chapters\/\d+s_/;
  // what other books call the same: a word of a row finds the others of it, too, for fewer points
  const SAME = [
    ["missing values", "missing", "gap", "imput", "nan"],
    ["early stopping", "held-out", "heldout"],
    ["regularis", "penalt", "penalis", "shrinkage", "target"],
    ["cross-validation", "cross validation", "leave-one-out", "left out", "folds"],
    ["explanation", "explain", "shap", "contribution", "reasons"],
    ["prior shift", "label shift", "prevalence", "class weights", "class_prior"],
    ["imbalance", "class_weight", "unequal costs", "class weights"],
    ["boosting", "xgboost", "lightgbm", "catboost"],
    ["discretis", "binning", "intervals", "cuts"],
    ["latent", "hidden component", "mixture"],
    ["outlier", "novelty", "anomal", "unusual", "score_samples"],
    ["learning rate", "step size", "lr"],
    ["out of core", "out-of-core", "does not fit", "parquet", "dask"],
    ["overfit", "overconfident", "too certain"],
    ["incremental learning", "online learning", "incremental", "stream", "partial_fit"],
    ["calibration curve", "reliability", "rescale", "temperature"],
    ["mixed data", "mixed table", "productmodel", "categories and numbers", "numbers and categories"],
  ];
  const british = (word) => word.replace(/iz(e|a|i)/g, "is$1");

  const sections = window.BOOK_SECTIONS.map(([page, anchor, title, text]) => ({
    url: page + (anchor && `#${anchor}`), title, text, small: british(text.toLowerCase()), smallTitle: british(title.toLowerCase()),
  }));

  const escaped = (word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  // a word is found where one begins with it; "leaves" is no "leaf", but "weight" finds "weights"
  const begins = (word) => new RegExp(`(?<![\\p{L}\\p{N}])${escaped(word)}`, "gu");

  // what is asked for, word by word or expression by expression, each with what else is called so
  function asked(phrase) {
    const found = [];
    let rest = ` ${phrase} `;
    for (const row of SAME) {
      const own = row.filter((name) => rest.includes(` ${name}`)).sort((a, b) => b.length - a.length)[0];
      if (!own) continue;
      const whole = rest.match(new RegExp(` (${escaped(own)}[\\p{L}\\p{N}]*)`, "u"))[1];
      rest = rest.replace(whole, "");
      found.push([whole, ...row.filter((name) => !whole.startsWith(name))]);
    }
    return [...found, ...splitQuery(rest).map((word) => [word])];
  }

  function points(section, word) {
    const own = section.smallTitle.split(" › ").at(-1);
    const titled = own.match(begins(word)) ? 20 : section.smallTitle.match(begins(word)) ? 4 : 0;
    const times = section.small.match(begins(word))?.length || 0;
    return titled + Math.min(8, 2 * Math.log2(1 + times));
  }

  function score(section, wanted, phrase) {
    let total = section.smallTitle.includes(phrase) ? 40 : section.small.includes(phrase) ? 15 : 0;
    for (const [word, ...others] of wanted) {
      const best = Math.max(points(section, word), ...others.map((other) => 0.7 * points(section, other)));
      if (!best) return 0;
      total += best;
    }
    return total * (GUIDES.test(section.url) ? 1.5 : SUPPLEMENTS.test(section.url) ? 0.5 : 1);
  }

  // the text with the words marked; what is not a word stays text
  function marked(text, words) {
    const piece = document.createDocumentFragment();
    const any = new RegExp(`(?<![\\p{L}\\p{N}])(?:${words.map(escaped).join("|")})[\\p{L}\\p{N}]*`, "giu");
    let end = 0;
    for (const hit of text.matchAll(any)) {
      const mark = document.createElement("mark");
      mark.textContent = hit[0];
      piece.append(text.slice(end, hit.index), mark);
      end = hit.index + hit[0].length;
    }
    piece.append(text.slice(end));
    return piece;
  }

  function line(section, words, phrase) {
    const together = section.small.indexOf(phrase);
    const first = together >= 0 ? together : Math.max(0, section.small.search(new RegExp(words.map(escaped).join("|"), "u")));
    let start = Math.max(0, first - BEFORE);
    if (start) start = section.text.indexOf(" ", start) + 1;
    const tail = start + LINE < section.text.length ? " …" : "";
    return (start ? "… " : "") + section.text.slice(start, start + LINE).replace(/ \S*$/, "") + tail;
  }

  function entry(url, title, text, words) {
    const item = document.createElement("li");
    const link = item.appendChild(document.createElement("a"));
    link.href = url;
    link.append(marked(title, words));
    if (text) {
      const said = item.appendChild(document.createElement("p"));
      said.className = "context";
      said.append(marked(text, words));
    }
    return item;
  }

  Search.query = (query) => {
    const phrase = british(query.toLowerCase().trim());
    const wanted = asked(phrase), words = wanted.flat();
    const names = new Set(splitQuery(query.toLowerCase().trim()));
    const hits = words.length ? sections.map((s) => [score(s, wanted, phrase), s]).filter(([total]) => total > 0) : [];
    hits.sort(([a], [b]) => b - a);
    const objects = [...names].flatMap((name) => Search.performObjectSearch(name, names));
    objects.sort((a, b) => b[4] - a[4]);
    const named = objects.filter((object) => object[4] > 10).slice(0, 5);
    const shown = hits.slice(0, MOST);
    Search.output.append(
      ...named.map(([page, name, anchor, about]) => entry(`${page}.html${anchor}`, name, about, words)),
      ...shown.map(([, section]) => entry(section.url, section.title, line(section, words, phrase), words))
    );
    Search.stopPulse();
    Search.title.innerText = "Search results";
    const count = hits.length === 1 ? "1 section" : `${hits.length} sections`;
    const more = hits.length > MOST ? `, the best ${MOST} of them here` : "";
    Search.status.innerText = hits.length || named.length ? `${count} with “${query}”${more}` :
      `No section has every word of “${query}”. Try fewer words, or the first letters of one.`;
  };
})();
