// What style sheets cannot do: wide formulas on a narrow screen, pages on paper, and a name that the theme leaves out.
"use strict";

(() => {
  const PAPER = 600; // pixels of a formula that fit beside the margins of a printed page, in a list or a proof
  const undo = [];

  // a formula within a sentence cannot be broken: where it is wider than its box it scrolls
  function markWide() {
    for (const formula of document.querySelectorAll("article span.math mjx-container")) {
      formula.classList.remove("wide");
      const box = formula.closest("p, li, td, dd, dt, figcaption, h1, h2, h3, h4") || document.body;
      formula.classList.toggle("wide", formula.getBoundingClientRect().width > box.clientWidth);
    }
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

  window.addEventListener("DOMContentLoaded", nameFolds);
  window.addEventListener("beforeprint", beforePrint);
  window.addEventListener("afterprint", afterPrint);
  window.addEventListener("resize", markWide);
  window.addEventListener("load", () => window.MathJax?.startup?.promise.then(markWide));
})();
