// What style sheets cannot do: wide formulas on a narrow screen, pages on paper, and a name that the theme leaves out.
"use strict";

(() => {
  const PAPER = 600; // pixels of a formula that fit beside the margins of a printed page, in a list or a proof
  const undo = [];

  const SMALLEST = 0.7; // of its size: smaller letters cannot be read
  const resize = (formula, share) => (formula.style.fontSize = `${share * parseFloat(formula.dataset.size)}%`);

  // a formula within a sentence cannot be broken: where it is wider than its box it is set smaller, and where that
  // is not enough it scrolls; a table scrolls as a whole
  function markWide() {
    const all = document.querySelectorAll("article span.math mjx-container");
    const formulas = [...all].filter((formula) => !formula.closest("td, th"));
    for (const formula of formulas) {
      formula.classList.remove("wide", "goes-on");
      formula.style.fontSize = formula.dataset.size ??= formula.style.fontSize;
    }
    const width = (element) => element.getBoundingClientRect().width;
    const share = (formula) => {
      const box = formula.closest("p, li, dd, dt, figcaption, caption, h1, h2, h3, h4") || document.body;
      const kept = formula.closest("span.kept");
      const beside = kept ? width(kept) - width(formula.parentElement) : 0; // what stays on its line
      return box.clientWidth / (width(formula.querySelector("mjx-math")) + beside);
    };
    const shares = formulas.map(share); // not a number, or infinite, in a fold
    const wide = formulas.filter((formula, i) => shares[i] < 1);
    formulas.forEach((formula, i) => shares[i] < 1 && resize(formula, Math.max(0.98 * shares[i], SMALLEST)));
    wide.filter((formula) => share(formula) < 1).forEach((formula) => formula.classList.add("wide"));
  }

  // a formula is a box, and a line may break on either side of it: not before a comma or hyphen and not after a bracket
  function keepPunctuation() {
    for (const formula of document.querySelectorAll("article span.math")) {
      const [before, after] = [formula.previousSibling, formula.nextSibling];
      const opening = (before?.nodeType === Node.TEXT_NODE && before.data.match(/[(\[“‘]+$/)?.[0]) || "";
      const kind = /^([.,;:!?)\]”’]+|-\w+[.,;:!?)\]”’]*)/;
      const closing = (after?.nodeType === Node.TEXT_NODE && after.data.match(kind)?.[0]) || "";
      if (!opening && !closing) continue;
      const kept = document.createElement("span");
      kept.className = "kept";
      formula.replaceWith(kept);
      kept.append(opening, formula, closing);
      if (opening) before.data = before.data.slice(0, -opening.length);
      if (closing) after.data = after.data.slice(closing.length);
    }
  }

  // a formula on lines of its own that is too wide for its column is set smaller, down to a size that can be read
  function fitDisplayed() {
    const formulas = [...document.querySelectorAll("article div.math > mjx-container")];
    for (const formula of formulas) formula.style.fontSize = formula.dataset.size ??= formula.style.fontSize;
    const shares = formulas.map((formula) => formula.clientWidth / formula.scrollWidth); // not a number in a fold
    formulas.forEach((formula, i) => {
      if (shares[i] < 1) resize(formula, Math.max(0.98 * shares[i], SMALLEST));
    });
  }

  const SCROLLING = `article :is(figure, div.cell_output, div.output.text_html, .pst-scrollable-table-container,
    .scorecard-rows, .results-graph > div, div.math mjx-container, mjx-container.wide, div.highlight pre)`;

  // what scrolls fades at the edge behind which it goes on; the caption of a picture does not
  function markOne(box) {
    const picture = box.tagName === "FIGURE" && box.querySelector("img");
    if (picture) {
      const height = picture.getBoundingClientRect().bottom - box.getBoundingClientRect().top;
      box.style.setProperty("--picture", `${height}px`);
    }
    box.classList.toggle("goes-on", box.scrollWidth - box.clientWidth - box.scrollLeft > 4);
  }

  function markAll() {
    if (undo.length) return; // on paper
    markWide();
    fitDisplayed();
    document.querySelectorAll(SCROLLING).forEach(markOne);
  }

  function onScroll(event) {
    if (event.target instanceof Element && event.target.matches(SCROLLING)) markOne(event.target);
  }

  function change(element, property, value) {
    const old = element.style[property];
    element.style[property] = value;
    undo.push(() => (element.style[property] = old));
  }

  // folded proofs and solutions open; formulas that are wider than the paper shrink
  function beforePrint() {
    for (const fold of document.querySelectorAll("details.sd-dropdown:not([open])")) {
      fold.open = true;
      undo.push(() => (fold.open = false));
    }
    for (const fold of document.querySelectorAll(".admonition.toggle-hidden")) {
      fold.classList.remove("toggle-hidden");
      undo.push(() => fold.classList.add("toggle-hidden"));
    }
    for (const formula of document.querySelectorAll("article mjx-container")) {
      const width = formula.querySelector("mjx-math").getBoundingClientRect().width;
      if (width > PAPER) {
        const size = parseFloat(getComputedStyle(formula).fontSize);
        change(formula, "fontSize", `${(size * PAPER) / width}px`);
      }
    }
  }

  function afterPrint() {
    while (undo.length) undo.pop()();
  }

  // the folds of the sidebar have only an icon
  function nameFolds() {
    for (const fold of document.querySelectorAll("nav summary")) fold.setAttribute("aria-label", "Pages below this one");
  }

  // of two folds in a row, of which the first shows nothing else, one that has no name of its own opens with the other
  function joinFolds() {
    const plain = (fold) => fold.querySelector("summary").textContent.includes("show source");
    for (const fold of [...document.querySelectorAll("div.cell > details.hide:only-child")].reverse()) {
      const next = fold.parentElement.nextElementSibling?.querySelector(":scope > details.hide");
      if (!next) continue;
      const mark = next.mark ?? next;
      const [kept, joined] = plain(mark) ? [fold, mark] : [mark, fold];
      if (!plain(joined)) continue;
      joined.classList.add("joined");
      joined.mark = kept;
      kept.addEventListener("toggle", () => (joined.open = kept.open));
    }
  }

  // more folds in a row stand behind one mark
  function gatherFolds() {
    const foldOf = (cell) => cell?.querySelector(":scope > details.hide:only-child");
    for (const fold of document.querySelectorAll("div.cell > details.hide:only-child")) {
      const first = fold.parentElement;
      if (fold.closest(".gathered") || foldOf(first.previousElementSibling)) continue;
      const run = [];
      for (let cell = first; foldOf(cell); cell = cell.nextElementSibling) run.push(cell);
      const marks = run.filter((cell) => !foldOf(cell).classList.contains("joined"));
      if (marks.length < 2) continue;
      const cell = document.createElement("div");
      const name = marks[0].querySelector(".collapsed").textContent;
      cell.className = "cell docutils container";
      cell.innerHTML = `<details class="admonition hide gathered"><summary>
        <p class="collapsed admonition-title">${name}, and ${marks.length - 1} more</p>
        <p class="expanded admonition-title">Hide these ${marks.length}</p></summary></details>`;
      first.before(cell);
      cell.firstElementChild.append(...run);
    }
  }

  // a printed table would be unreadable with broken lines
  function markColumns() {
    for (const text of document.querySelectorAll("article :is(div.cell_output, div.highlight-text) pre")) {
      const columns = text.textContent.split("\n").filter((line) => /\S {2,}\S/.test(line));
      text.classList.toggle("columns", columns.length > 1 || /^array\(\[\[/.test(text.textContent));
    }
  }

  // a long name may break between its parts, and so not within a word
  function markParts() {
    const NAMES = `article :is(h1, h2, h3, code.literal:not(td *), .notation code, .classifier-table td:first-child code,
      .results-index code.literal), .page-toc .nav-link`;
    const PARTS = /(?<=[a-z])(?=[A-Z][a-z])|(?<=[._(=,])(?=\w)/;
    for (const name of document.querySelectorAll(NAMES)) {
      const texts = document.createTreeWalker(name, NodeFilter.SHOW_TEXT);
      const long = [];
      while (texts.nextNode()) if (name.closest(".page-toc") || /\S{20}/.test(texts.currentNode.data)) long.push(texts.currentNode);
      for (const text of long) {
        const [first, ...others] = text.data.split(PARTS);
        text.replaceWith(first, ...others.flatMap((part) => [document.createElement("wbr"), part]));
      }
    }
  }

  // on a phone the cells of a stacked table stand one below the other, each after the head of its column
  function nameCells() {
    for (const table of document.querySelectorAll("table.stacked")) {
      const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
      for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, i) => (cell.dataset.head = heads[i]));
    }
  }

  // a link may lead into a closed solution
  function openTarget() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let fold = target; (fold = fold?.closest(".admonition.toggle-hidden")); fold = fold.parentElement) {
      fold.scrollTop = 0;
      fold.querySelector(".toggle-button").click();
      target.scrollIntoView();
    }
  }

  window.addEventListener("DOMContentLoaded", nameFolds);
  window.addEventListener("DOMContentLoaded", keepPunctuation);
  window.addEventListener("DOMContentLoaded", joinFolds);
  window.addEventListener("DOMContentLoaded", gatherFolds);
  window.addEventListener("DOMContentLoaded", markColumns);
  window.addEventListener("DOMContentLoaded", nameCells);
  window.addEventListener("DOMContentLoaded", markParts);
  window.addEventListener("beforeprint", beforePrint);
  window.addEventListener("afterprint", afterPrint);
  window.addEventListener("resize", markAll);
  window.addEventListener("load", markAll);
  window.addEventListener("load", openTarget);
  window.addEventListener("hashchange", openTarget);
  window.addEventListener("load", () => window.MathJax?.startup?.promise.then(markAll));
  document.addEventListener("toggle", markAll, true); // of a fold, whose inside may have had no size
  // a solution is a fold of another kind, which sends no such event
  document.addEventListener("click", (event) => event.target.closest(".solution") && requestAnimationFrame(markAll));
  document.addEventListener("scroll", onScroll, { capture: true, passive: true });
})();
