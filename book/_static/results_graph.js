// The graph of results: the arrows of the box that is pointed at stand out.
"use strict";

for (const box of document.querySelectorAll(".results-graph a")) {
  const arrows = document.querySelectorAll(`.results-graph [data-ends~="${box.dataset.result}"]`);
  for (const [event, shown] of [["pointerenter", true], ["pointerleave", false]]) {
    box.addEventListener(event, () => {
      box.closest("svg").classList.toggle("one", shown);
      for (const arrow of arrows) arrow.classList.toggle("chosen", shown);
    });
  }
}
