// The index of results: its rows filtered by kind, chapter, origin and words. Without it, the whole table is shown.
"use strict";

(() => {
  const ALL = "all";
  const OURS = "this book";
  const OTHERS = "other literature";
  const SOURCES = /(?:Pérez et al\.|Zaidi et al\.|Srivastava|Gambosi) \(\d{4}\)/g;
  const form = document.querySelector(".results-filter");
  const status = document.querySelector(".results-status");
  const { kind, chapter, origin, words } = form.elements;
  const rows = [...document.querySelectorAll("table.results-index tbody tr")].map((element) => {
    const [name, number] = element.cells[0].querySelector("a").textContent.split(" ");
    const from = element.cells[2].textContent;
    const known = from.match(SOURCES) ?? [];
    const ours = /\b(ours?|new)\b/.test(from) ? [OURS] : [];
    return {
      element,
      kind: [name.toLowerCase()],
      chapter: [number.split(".")[0]],
      origin: known.length + ours.length ? [...known, ...ours] : [OTHERS],
      text: element.textContent.toLowerCase(),
    };
  });

  for (const select of [kind, chapter, origin]) {
    const values = new Set(rows.flatMap((row) => row[select.name]));
    select.append(...[ALL, ...values].map((value) => new Option(value, value)));
  }

  function filter() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const row of rows) {
      const shown =
        [kind, chapter, origin].every(({ name, value }) => value === ALL || row[name].includes(value)) &&
        wanted.every((word) => row.text.includes(word));
      row.element.hidden = !shown;
      found += shown;
    }
    status.textContent = `${found} of ${rows.length} results`;
  }

  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  filter();
})();
