// The list of printed numbers: filled from scorecard_data.js, filtered by source, table, verdict, worth and words.
"use strict";

(() => {
  const PAGE = 50; // rows shown at a time
  const ALL = "all";
  const { columns, sources, texts, rows, sections } = window.scorecard;
  const at = Object.fromEntries(columns.map((name, i) => [name, i]));
  const text = (row, name) => texts[row[at[name]]];

  const form = document.querySelector(".scorecard-filter");
  const { source, table, verdict, worth, words } = form.elements;
  const status = document.querySelector(".scorecard-status");
  const region = document.querySelector(".scorecard-rows");
  const pages = document.querySelector(".scorecard-pages");
  const [earlier, later] = pages.querySelectorAll("button");
  const root = document.documentElement.dataset.content_root || "";
  let found = rows;
  let first = 0;

  const distinct = (name, among = rows) => [...new Set(among.map((row) => text(row, name)))];

  function offer(select, values) {
    const old = select.value;
    select.replaceChildren(...[ALL, ...values].map((value) => new Option(sources[value] || value, value)));
    select.value = values.includes(old) ? old : ALL;
  }

  function offerTables() {
    offer(table, source.value === ALL ? [] : distinct("table", rows.filter((row) => text(row, "source") === source.value)));
    table.disabled = source.value === ALL;
  }

  function element(name, content, attributes = {}) {
    const made = Object.assign(document.createElement(name), attributes);
    made.append(...[content].flat());
    return made;
  }

  function judgement(row) {
    const [found, reason] = ["verdict", "why"].map((column) => text(row, column));
    const link = sections[reason] && element("a", "shown here", { href: root + sections[reason] });
    return [reason ? `${found}: ${reason}` : found, ...(link ? [" (", link, ")"] : [])];
  }

  function line(row) {
    const [name, dataset, setting] = ["row", "dataset", "setting"].map((column) => text(row, column));
    const alike = name.toLowerCase() === dataset;
    return element("tr", [
      element("td", `${sources[text(row, "source")]} ${text(row, "table")}`),
      element("td", alike ? name : `${name} ${dataset}`),
      element("td", text(row, "method")),
      element("td", [text(row, "metric"), setting].filter(Boolean).join(", ")),
      element("td", text(row, "printed")),
      element("td", text(row, "ours")),
      element("td", judgement(row)),
      element("td", [text(row, "worth"), text(row, "width")].filter(Boolean).join(": ")),
    ]);
  }

  function show() {
    region.querySelector("tbody").replaceChildren(...found.slice(first, first + PAGE).map(line));
    const last = Math.min(first + PAGE, found.length);
    const range = found.length > PAGE ? `, rows ${first + 1} to ${last} shown` : "";
    status.textContent = `${found.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} printed numbers${range}`;
    earlier.disabled = first === 0;
    later.disabled = last === found.length;
    region.scrollTop = 0;
  }

  function filter() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = [["source", source], ["table", table], ["verdict", verdict], ["worth", worth]].filter(([, select]) => select.value !== ALL);
    found = rows.filter(
      (row) =>
        chosen.every(([name, select]) => text(row, name) === select.value) &&
        wanted.every((word) => [sources[text(row, "source")], ...row.map((number) => texts[number])].some((said) => said.toLowerCase().includes(word))),
    );
    first = 0;
    show();
  }

  function turn(by) {
    first += by;
    show();
    region.focus();
  }

  offer(source, distinct("source"));
  offer(verdict, distinct("verdict"));
  offer(worth, distinct("worth").filter(Boolean));
  offerTables();
  source.addEventListener("input", offerTables);
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  earlier.addEventListener("click", () => turn(-PAGE));
  later.addEventListener("click", () => turn(PAGE));
  for (const part of [form, region, pages]) part.hidden = false;
  filter();
})();
