"use strict";
/* Live cells: a button under each code cell runs it in the reader's browser, below what is stored. `make live` adds this
   script to the pages that opt in, with the file that lists their cells; nothing is loaded before the first click. */
(() => {
  const script = document.currentScript;
  const served = location.protocol !== "file:";
  let worker = null, page = null, box = null, running = null, asked = null, busy = false, queue = [];
  const live = [];  // of each cell: {source, hidden, place, text, edited, done, output}

  function make(tag, properties = {}, ...inside) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...inside);
    return element;
  }

  const button = (text, label, action) => {
    const element = make("button", {type: "button", className: "live-button", textContent: text});
    element.setAttribute("aria-label", label);
    element.addEventListener("click", action);
    return element;
  };

  function tell(text, stoppable = false) {
    box ??= document.body.appendChild(make("div", {className: "live-state"}, make("span"), button("Stop (Esc)", "Stop the running code, by the key Escape", stop)));
    box.firstChild.setAttribute("role", "status");
    box.firstChild.textContent = text;
    box.lastChild.hidden = !stoppable;
    box.hidden = !text;
  }

  function stop() {
    worker?.terminate();
    worker = running = null;
    busy = false;
    queue = [];
    for (const cell of live) {
      cell.done = false;
      cell.bar?.classList.remove("live-running");
    }
    if (box?.contains(document.activeElement)) asked?.bar.querySelector("button").focus();
    tell("Stopped. The next run begins anew, with the cells above.");
  }

  function begin() {
    worker = new Worker(new URL("live_worker.js", script.src));
    worker.onmessage = ({data}) => receive(data);
    worker.onerror = (event) => { stop(); tell(`Python could not be started: ${event.message}`); };
    worker.postMessage({packages: page.packages});
    tell(`Loading Python, ${megabytes(page.bytes)} MB`, true);
  }

  const megabytes = (bytes) => (bytes / 1e6).toFixed(0);

  function receive(data) {
    if (data.loaded && !running) tell(`Loading Python: ${megabytes(data.loaded)} of ${megabytes(page.bytes)} MB`, true);
    if (data.running) {
      running = live.find((cell) => cell.id === data.running);
      running.bar?.classList.add("live-running");
      const number = live.filter((cell) => !cell.hidden).indexOf(running) + 1;
      tell(number ? `Running cell ${number}` : "Running a cell that the page does not show", true);
    }
    if (data.output) {
      const cell = live.find((one) => one.id === data.id);
      cell.done = !data.error.length;
      cell.bar?.classList.remove("live-running");
      if (!cell.hidden || data.error.length) shown(cell, data);
      document.dispatchEvent(new CustomEvent("live:ran", {detail: data}));
    }
    if (data.idle || data.failed) {
      running = null;
      tell(data.failed ?? "");
      if (queue.length) worker.postMessage(queue.shift());
      else busy = false;
    }
  }

  function run(cell) {
    asked = cell;
    if (!worker) begin();
    const place = live.indexOf(cell), before = live.slice(0, place).filter((one) => !one.empty);
    const sent = (one) => ({id: one.id, source: one.text(), done: one.done});
    const job = cell.empty ? {cells: [sent(cell)], choose: before.map(sent)}
      : {cells: [...before.filter((one) => !one.done), cell].map(sent)};
    if (busy) queue.push(job);
    else worker.postMessage(job);
    busy = true;
  }

  /* what a cell has put out; an error shows its last line first */
  function shown(cell, {output, error}) {
    const where = cell.hidden ? live.find((one) => !one.hidden && live.indexOf(one) > live.indexOf(cell)) ?? cell : cell;
    if (!where.bar) return;
    where.result?.remove();
    where.result = make("div", {className: "live-output"});
    where.result.setAttribute("role", "region");
    where.result.setAttribute("aria-label", "New output");
    where.result.append(make("p", {className: "live-label", textContent: cell.hidden ? "An unseen cell failed" : "New output"}));
    for (const {kind, text} of output) {
      const piece = make("div", {className: `live-${kind.split("/")[0]}`});
      if (kind === "text/html" || kind === "image/svg+xml") piece.innerHTML = text;
      else piece.append(make("pre", {textContent: text}));
      where.result.append(piece);
    }
    if (error.length) {
      const whole = make("details", {}, make("summary", {textContent: "The whole traceback"}), make("pre", {textContent: error.join("\n")}));
      where.result.append(make("pre", {className: "live-error", textContent: error.at(-1)}), whole);
    } else if (!output.length) where.result.append(make("p", {textContent: "It ran and printed nothing."}));
    where.result.setAttribute("aria-live", "polite");
    where.bar.after(where.result);
  }

  function edit(cell) {
    if (cell.area) return;
    const code = cell.place.querySelector("pre");
    code?.closest("details")?.setAttribute("open", "");
    cell.area = make("textarea", {className: "live-source", value: cell.source, spellcheck: false});
    cell.area.rows = Math.max(3, cell.source.split("\n").length);
    cell.area.setAttribute("aria-label", cell.empty ? "Your code" : "Code of this cell");
    const restore = button("Put back", "Put the code of the book back", () => {
      cell.area.replaceWith(code);
      cell.area = null;
      cell.bar.classList.remove("live-edited");
      restore.remove();
      cell.editor.hidden = false;
      cell.done = false;
    });
    cell.area.addEventListener("input", () => {
      cell.bar.classList.toggle("live-edited", cell.area.value !== cell.source);
      cell.done = false;
    });
    cell.area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.shiftKey) { event.preventDefault(); run(cell); }
    });
    if (code) code.replaceWith(cell.area);
    else cell.place.prepend(cell.area);
    if (!cell.empty) { cell.editor.hidden = true; cell.bar.append(restore); cell.area.focus(); }
  }

  function equip(cell, after) {
    cell.bar = make("div", {className: "live-bar"});
    if (!served) {
      cell.bar.append(make("span", {textContent: "To run this cell, open the pages with make serve: browsers run no code from files."}));
    } else {
      const label = cell.empty ? "Run your code" : "Run this cell, after the cells above it";
      cell.bar.append(button("Run", label, () => run(cell)));
      cell.editor = button("Edit", "Edit this cell", () => edit(cell));
      if (!cell.empty) cell.bar.append(cell.editor);
      cell.bar.append(make("span", {className: "live-mark", textContent: "edited"}));
    }
    after.after(cell.bar);
  }

  /* an empty cell under each exercise, of which the cells before it in the page make what it needs */
  function exercise(element, number) {
    const place = element.insertAdjacentElement("afterend", make("div", {className: "live-exercise"}));
    const cell = {id: `exercise ${number}`, source: "", empty: true, place, text: () => cell.area?.value ?? ""};
    const next = live.findIndex((one) => one.place && element.compareDocumentPosition(one.place) & Node.DOCUMENT_POSITION_FOLLOWING);
    live.splice(next < 0 ? live.length : next, 0, cell);
    const inside = place.appendChild(make("span"));
    equip(cell, inside);
    inside.remove();
    edit(cell);
  }

  async function equipPage() {
    page = window.liveCells;
    const main = document.querySelector("main") ?? document.body;
    const places = [...main.querySelectorAll(page.selector)];
    for (const [number, {source, hidden, live: runs}] of page.cells.entries()) {
      const cell = {id: `cell ${number + 1}`, source, hidden, place: hidden ? null : places.shift()};
      if (!runs) continue;  // it needs a package that the browser has not
      cell.text = () => cell.area?.value ?? source;
      live.push(cell);
    }
    for (const cell of live.filter((one) => one.place)) {
      const input = cell.place.matches(".cell") ? cell.place.querySelector(":scope > details, :scope > .cell_input") : cell.place;
      const output = cell.place.querySelector(":scope > .cell_output");
      equip(cell, output ?? input ?? cell.place);
    }
    if (served) [...main.querySelectorAll("div.exercise")].forEach(exercise);
  }

  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && busy) stop(); });
  document.head.append(make("link", {rel: "stylesheet", href: new URL("live.css", script.src).href}));
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", equipPage);
  else equipPage();
})();
