// The pictures that move: each takes its data from the page and draws an SVG anew when a control changes.
// What is computed here is tested against rcpkg in a browser (tests/book/test_moving_pictures.py).
"use strict";

window.movingPictures = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const fixed = (value, digits) => value.toFixed(digits).replace("-", "−");

  function draw(name, attributes = {}, parent = null, text = "") {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    parent?.append(made);
    return made;
  }

  function element(name, attributes = {}, ...content) {
    const made = Object.assign(document.createElement(name), attributes);
    made.append(...content);
    return made;
  }

  // a range with its label and its value in words
  function slider(parent, label, range, words, changed) {
    const input = element("input", { type: "range", ...range, value: range.value });
    const value = element("output");
    const tell = () => {
      value.textContent = words(Number(input.value));
      input.setAttribute("aria-valuetext", value.textContent);
    };
    input.addEventListener("input", () => { tell(); changed(); });
    parent.append(element("label", {}, element("span", {}, label), input, value));
    tell();
    return { get value() { return Number(input.value); }, set(to) { input.value = to; tell(); } };
  }

  // a drawing with axes: x and y are maps from data to pixels, at(event) gives the data under a pointer
  function plane(figure, label, [left, right], [bottom, top], width, height, names) {
    const edge = { left: 46, right: 10, top: 10, bottom: 40 };
    const inner = [width - edge.left - edge.right, height - edge.top - edge.bottom];
    const x = (value) => edge.left + ((value - left) / (right - left)) * inner[0];
    const y = (value) => edge.top + ((top - value) / (top - bottom)) * inner[1];
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    const id = `frame-${figure.id}`;
    draw("rect", { x: edge.left, y: edge.top, width: inner[0], height: inner[1] }, draw("clipPath", { id }, svg));
    const marks = draw("g", { "clip-path": `url(#${id})` }, svg);
    draw("rect", { x: edge.left, y: edge.top, width: inner[0], height: inner[1], class: "frame" }, svg);
    for (const value of ticks(left, right)) {
      draw("text", { x: x(value), y: height - 22, "text-anchor": "middle" }, svg, fixed(value, right - left > 3 ? 0 : 1));
    }
    for (const value of ticks(bottom, top)) {
      draw("text", { x: edge.left - 6, y: y(value) + 4, "text-anchor": "end" }, svg, fixed(value, top - bottom > 3 ? 0 : 1));
    }
    draw("text", { x: edge.left + inner[0] / 2, y: height - 4, "text-anchor": "middle" }, svg, names[0]);
    draw("text", { x: -(edge.top + inner[1] / 2), y: 12, "text-anchor": "middle", transform: "rotate(-90)" }, svg, names[1]);
    const at = (event) => {
      const box = svg.getBoundingClientRect();
      const [px, py] = [event.clientX - box.left, event.clientY - box.top].map((p) => (p * width) / box.width);
      return [left + ((px - edge.left) / inner[0]) * (right - left), top - ((py - edge.top) / inner[1]) * (top - bottom)];
    };
    return { svg, marks, x, y, at, bounds: [left, right, bottom, top] };
  }

  function ticks(low, high) {
    const step = high - low > 3 ? 2 : 0.2;
    const found = [];
    for (let k = Math.ceil(low / step); k * step <= high + 1e-9; k += 1) found.push(k * step);
    return found;
  }

  const line = (points, { x, y }) => `M${points.map(([a, b]) => `${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("L")}`;

  // ---- Gaussian naive Bayes with two classes, calibrated ----

  // statistics of class c: weights, sums and sums of squares of the features
  function statisticsOf(rows, weights) {
    const s = [0, 1].map(() => [0, 0, 0, 0, 0]);
    rows.forEach(([a, b], i) => {
      for (const c of [0, 1]) {
        const w = weights[i][c];
        [1, a, b, a * a, b * b].forEach((value, k) => (s[c][k] += w * value));
      }
    });
    return s;
  }

  const combine = (s, t, f) => s.map((part, c) => part.map((value, k) => f(value, t[c][k])));

  // null where a count or a variance is not positive
  function parametersOf(s) {
    const total = s[0][0] + s[1][0];
    const classes = s.map(([n, a, b, aa, bb]) => ({
      prior: n / total,
      mean: [a / n, b / n],
      variance: [aa / n - (a / n) ** 2, bb / n - (b / n) ** 2],
    }));
    return classes.every(({ prior, variance }) => prior > 0 && variance.every((v) => v > 0)) ? classes : null;
  }

  // what the model says of a row, scorer.js computes
  const scorers = new WeakMap();

  function scorerOf(model) {
    if (!scorers.has(model)) {
      const [mean, covariance] = ["mean", "variance"].map((name) => model.map((of) => of[name]));
      const part = { kind: "gaussian", columns: mean[0].map((_, j) => j), shared: false, independent: true, mean, covariance };
      const content = { classes: [0, 1], log_prior: model.map(({ prior }) => Math.log(prior)), parts: [part] };
      scorers.set(model, window.rcpkgScorer(content));
    }
    return scorers.get(model);
  }

  // log odds of class 1
  function logOdds(model, row) {
    const [first, second] = scorerOf(model).logJoint(row);
    return second - first;
  }

  const sigmoid = (t) => 1 / (1 + Math.exp(-t));
  const softplus = (t) => Math.max(t, 0) + Math.log1p(Math.exp(-Math.abs(t)));

  // the pooled target: class weights and means of the rows, one variance a feature; four pseudo-rows
  function pooledTarget(s) {
    const model = parametersOf(s);
    const within = [0, 1].map((j) => sum(model.map(({ prior, variance }) => prior * variance[j])));
    return model.map(({ prior, mean }) =>
      [1, ...mean, ...mean.map((m, j) => within[j] + m * m)].map((value) => 4 * prior * value));
  }

  // the model after each update, until the next statistics belong to no model
  function* updated(rows, labels, weight, rate) {
    const hot = labels.map((label) => [1 - label, label]);
    const own = statisticsOf(rows, hot);
    const drawn = pooledTarget(own);
    const shrink = (lr) => 1 + (lr * weight * 4) / rows.length;
    let s = combine(own, drawn, (a, b) => (a + weight * b) / shrink(1));
    for (let model = parametersOf(s); model; model = parametersOf(s)) {
      yield model;
      const signed = rows.map((row, i) => {
        const difference = labels[i] - sigmoid(logOdds(model, row));
        return [-difference, difference];
      });
      const moved = combine(statisticsOf(rows, signed), drawn, (a, b) => a + weight * b);
      s = combine(s, moved, (a, b) => (a + rate * b) / shrink(rate));
    }
  }

  // the model after so many updates, and how many were valid
  function calibrate(rows, labels, updates, weight, rate) {
    const found = { updates: -1 };
    for (found.model of updated(rows, labels, weight, rate)) {
      found.updates += 1;
      if (found.updates === updates) break;
    }
    return found;
  }

  function lossesOf(model, rows, labels) {
    const odds = rows.map((row) => logOdds(model, row));
    return {
      logLoss: sum(odds.map((o, i) => softplus(labels[i] ? -o : o))) / rows.length,
      error: sum(odds.map((o, i) => Number(o > 0 !== Boolean(labels[i])))) / rows.length,
    };
  }

  // rows of two classes in the plane, and what a model of them says
  function scene(figure, data) {
    const columns = [0, 1].map((j) => data.rows.map((row) => row[j]));
    const [horizontal, vertical] = columns.map((c) => [Math.min(...c) - 0.6, Math.max(...c) + 0.6]);
    const box = plane(figure, "Two clouds of rows, the boundary between the classes, and the ellipses of the model",
      horizontal, vertical, 640, 420, ["first feature", "second feature"]);
    const [left, right, bottom, top] = box.bounds;
    const [nx, ny] = [160, 105];
    const [dx, dy] = [(right - left) / nx, (top - bottom) / ny];
    const centre = ([i, j]) => [left + (i + 0.5) * dx, bottom + (j + 0.5) * dy];

    // where class 1 wins, by rows of the picture, and the line around it
    function regions(model) {
      const [along, up] = [nx, ny].map((size, c) => Array.from({ length: size }, (_, k) => logOdds(model, centre(c ? [0, k] : [k, 0]))));
      const odds = up.map((v) => along.map((u) => u + v - up[0])); // the features are independent within a class
      let [path, edge] = ["", ""];
      for (let j = 0; j < ny; j += 1) {
        for (let i = 0, from = -1; i <= nx; i += 1) {
          const inside = i < nx && odds[j][i] > 0;
          if (inside && from < 0) from = i;
          if (!inside && from >= 0) {
            const [x0, x1] = [box.x(left + from * dx), box.x(left + i * dx)];
            const [y0, y1] = [box.y(bottom + (j + 1) * dy), box.y(bottom + j * dy)];
            path += `M${x0.toFixed(1)} ${y0.toFixed(1)}H${x1.toFixed(1)}V${y1.toFixed(1)}H${x0.toFixed(1)}Z`;
            from = -1;
          }
          if (i + 1 < nx && j + 1 < ny) edge += crossing(odds, i, j);
        }
      }
      return { path, edge };
    }

    // the line between the classes within four neighbours of the grid: where the odds change their sign on two sides
    function crossing(odds, i, j) {
      const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]];
      const ends = [];
      corners.forEach((a, k) => {
        const b = corners[(k + 1) % 4];
        const [u, v] = [odds[a[1]][a[0]], odds[b[1]][b[0]]];
        if (u > 0 !== v > 0) ends.push(centre(a.map((value, c) => value + (u / (u - v)) * (b[c] - value))));
      });
      return ends.length ? line(ends, box) : "";
    }

    function point([a, b], label, look, size) {
      const [x, y, r] = [box.x(a), box.y(b), size];
      if (label) draw("rect", { x: x - r, y: y - r, width: 2 * r, height: 2 * r, class: `class-1 ${look}` }, box.marks);
      else draw("circle", { cx: x, cy: y, r, class: `class-0 ${look}` }, box.marks);
    }

    // returns the boundary
    function show(model) {
      const { path, edge } = regions(model);
      const [px, py] = [box.x(left), box.y(top)];
      box.marks.replaceChildren();
      draw("rect", { x: px, y: py, width: box.x(right) - px, height: box.y(bottom) - py, class: "class-0 wins" }, box.marks);
      for (const look of ["ground", "class-1 wins"]) draw("path", { d: path, class: look }, box.marks);
      model.forEach(({ mean, variance }, c) => [1, 2, 3].forEach((k) => draw("ellipse", {
        cx: box.x(mean[0]), cy: box.y(mean[1]), class: `class-${c} contour`,
        rx: box.x(k * Math.sqrt(variance[0])) - box.x(0), ry: box.y(0) - box.y(k * Math.sqrt(variance[1])),
      }, box.marks)));
      draw("path", { d: edge, class: "boundary" }, box.marks);
      return edge;
    }

    return { ...box, show, point };
  }

  function judged(model, data) {
    const { logLoss, error } = lossesOf(model, data.fresh, data.freshLabels);
    return `${fixed(100 * error, 2)} % wrong, log-loss ${fixed(logLoss, 3)}`;
  }

  function clouds(figure, data) {
    const added = [];
    const box = scene(figure, data);
    const controls = element("div", { className: "controls" });
    const said = element("p", { className: "said" });
    said.setAttribute("role", "status");
    const count = slider(controls, "updates", { min: 0, max: 300, step: 1, value: 0 }, String, show);
    const weight = slider(controls, "weight of the target", { min: 0, max: data.weights.length - 1, step: 1, value: 5 },
      (k) => String(data.weights[k]), show);
    const which = element("select", {}, new Option("first class (blue)", 0), new Option("second class (orange)", 1));
    const clear = element("button", { type: "button" }, "Take the added rows away");
    const corner = [0, 1].map((j) => element("input", { type: "number", step: 0.1, value: [2.5, 2][j],
      ariaLabel: `${["first", "second"][j]} feature of a row to add` }));
    const add = element("button", { type: "button" }, "Add this row");
    controls.append(element("label", {}, element("span", {}, "a click adds a row of the"), which),
      element("div", {}, ...corner, add, clear));
    figure.prepend(box.svg, said, controls);

    function enter(row) {
      if (row.every(Number.isFinite)) added.push([row, Number(which.value)]);
      show();
    }
    box.svg.addEventListener("click", (event) => enter(box.at(event)));
    add.addEventListener("click", () => enter(corner.map((input) => input.valueAsNumber)));
    clear.addEventListener("click", () => { added.length = 0; show(); });

    function show() {
      const rows = [...data.rows, ...added.map(([row]) => row)];
      const labels = [...data.labels, ...added.map(([, label]) => label)];
      const { model, updates } = calibrate(rows, labels, count.value, data.weights[weight.value], data.rate);
      box.show(model);
      rows.forEach((row, i) => (i < data.rows.length ? box.point(row, labels[i], "row", 2.6) : box.point(row, labels[i], "row added", 5)));
      const stopped = updates < count.value ? ` It stopped after ${updates}: the next statistics belong to no model.` : "";
      said.textContent = `On ${data.fresh.length.toLocaleString("en")} new rows: ${judged(model, data)}.${stopped}`;
    }

    show();
  }

  // ---- the same, which moves once when it comes into view: a row is drawn the larger the more it pulls ----

  const NOTES = [["start", -5.5, 4.5, "this cluster widens the blue Gaussian"], ["end", 1.05, -2.4, "large: pulls hard"],
    ["end", 3.6, 2.15, "boundary by counting"], ["end", 3.6, 3.4, "calibrated"]];

  function front(figure, data) {
    const [LAST, PAUSE, LASTS] = [300, 1000, 5000]; // updates; milliseconds before the first, and for all of them
    const box = scene(figure, data);
    const said = element("p", { className: "said" });
    const again = element("button", { type: "button" }, "Play again");
    figure.prepend(box.svg, said, element("div", { className: "controls" }, element("div", {}, again)));
    let playing = 0;

    function play(moves, at) {
      const models = updated(data.rows, data.labels, data.weights[5], data.rate);
      let [model, updates] = [models.next().value, 0];
      const counted = box.show(model);
      const mine = (playing += 1);

      function advance(to) {
        for (; updates < to; updates += 1) model = models.next().value;
        if (mine === playing) show();
      }

      function show() {
        box.show(model);
        draw("path", { d: counted, class: "boundary counted" }, box.marks);
        data.rows.forEach((row, i) => {
          const pull = Math.abs(data.labels[i] - sigmoid(logOdds(model, row)));
          box.point(row, data.labels[i], "row", 1.5 + 5 * pull);
        });
        for (const [anchor, a, b, text] of NOTES) {
          draw("text", { x: box.x(a), y: box.y(b), class: "note", "text-anchor": anchor }, box.marks, text);
        }
        said.textContent = `${updates ? `After ${updates} updates` : "Fitted by counting"}: ${judged(model, data)} on new rows.`;
        const share = (performance.now() - began - PAUSE) / LASTS;
        if (moves && updates < LAST) requestAnimationFrame(() => advance(Math.ceil(LAST * Math.min(Math.max(share, 0), 1))));
      }

      const began = performance.now();
      advance(at);
    }

    again.addEventListener("click", () => play(true, 0));
    const rests = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    play(false, rests ? LAST : 0);
    if (rests) return;
    const view = new IntersectionObserver(([entry]) => {
      if (!entry.isIntersecting) return;
      view.disconnect();
      play(true, 0);
    }, { threshold: 0.5 });
    view.observe(box.svg);
    window.addEventListener("beforeprint", () => play(false, LAST));
  }

  // ---- naive Bayes with one feature of three states in copies; class 1 is the mirror image of class 0 ----

  // posteriors of class 0 given the first and the last state
  function outerPosteriors([p0, p2], copies) {
    const [a, b] = [p0 ** copies, p2 ** copies];
    return [a / (a + b), b / (a + b)];
  }

  // s(X, Y − P) of class 0 for its outer states
  function surplus(p, { counts, copies }) {
    const [first, last] = outerPosteriors(p, copies);
    const outer = counts[0] + counts[2];
    return [counts[0] - outer * first, counts[2] - outer * last];
  }

  function ways(start, data) {
    const total = sum(data.counts);
    const calibrated = [start];
    const gradient = [start];
    for (let t = 0; t < data.updates; t += 1) {
      const p = calibrated.at(-1);
      const g = surplus(p, data);
      calibrated.push(p.map((value, k) => value + (data.rate * g[k]) / total));
      const q = gradient.at(-1);
      const h = surplus(q, data);
      const raised = q.map((value, k) => value * Math.exp(data.gradientStep * h[k]));
      const size = sum(raised) + 1 - sum(q);
      gradient.push(raised.map((value) => value / size));
    }
    return { calibrated, gradient };
  }

  // of a row on average: log-loss, and joint log-likelihood
  function lossesOfStates(p, { counts, copies }) {
    const [first, last] = outerPosteriors(p, copies);
    const total = sum(counts);
    const states = [p[0], 1 - p[0] - p[1], p[1]];
    return {
      logLoss: -(counts[0] * Math.log(first) + counts[1] * Math.log(0.5) + counts[2] * Math.log(last)) / total,
      joint: Math.log(0.5) + (copies * sum(counts.map((n, v) => n * Math.log(states[v])))) / total,
    };
  }

  function leaf(figure, data) {
    const best = (data.counts[0] / data.counts[2]) ** (1 / data.copies);
    const box = plane(figure, "Leaves and fibres of models, and the ways of two algorithms from a start",
      [0, 1], [0, 1], 520, 460, ["probability of the first state, p₀", "probability of the last state, p₂"]);
    const controls = element("div", { className: "controls" });
    const said = element("p", { className: "said" });
    said.setAttribute("role", "status");
    const total = sum(data.counts);
    const range = { min: 0.02, max: 0.96, step: 0.01 };
    const first = slider(controls, "p₀ of the start", { ...range, value: data.start[0] }, (v) => fixed(v, 2), () => show(0));
    const last = slider(controls, "p₂ of the start", { ...range, value: data.start[1] }, (v) => fixed(v, 2), () => show(1));
    figure.prepend(box.svg, said, controls);

    let dragged = false;
    const drag = (event) => {
      const [a, b] = box.at(event);
      first.set(Math.min(Math.max(a, range.min), range.max));
      last.set(Math.min(Math.max(b, range.min), range.max));
      show(0);
    };
    box.svg.addEventListener("pointerdown", (event) => { dragged = true; box.svg.setPointerCapture(event.pointerId); drag(event); });
    box.svg.addEventListener("pointermove", (event) => dragged && drag(event));
    box.svg.addEventListener("pointerup", () => (dragged = false));

    // the state in the middle keeps a probability: the slider that was not moved makes room
    function show(moved) {
      const room = 0.98;
      if (first.value + last.value > room) {
        if (moved === 0) last.set(Math.max(room - first.value, range.min));
        else first.set(Math.max(room - last.value, range.min));
      }
      const start = [first.value, last.value];
      const { calibrated, gradient } = ways(start, data);
      const height = sum(start);
      box.marks.replaceChildren();
      for (const level of [0.2, 0.4, 0.6, 0.8]) draw("path", { d: line([[level, 0], [0, level]], box), class: "leaf" }, box.marks);
      for (const ratio of [0.2, 0.5, 1, 2.5, 5]) draw("path", { d: line([[0, 0], [ratio, 1]], box), class: "fibre" }, box.marks);
      draw("path", { d: line([[0, 1], [1, 0]], box), class: "frame" }, box.marks);
      draw("path", { d: line([[height, 0], [0, height]], box), class: "leaf own" }, box.marks);
      draw("path", { d: line([[0, 0], [best, 1]], box), class: "fibre own" }, box.marks);
      const [u, v] = [box.x(data.counts[0] / total), box.y(data.counts[2] / total)];
      draw("path", { d: `M${u - 7} ${v}L${u} ${v - 7}L${u + 7} ${v}L${u} ${v + 7}Z`, class: "closed-form" }, box.marks);
      const farther = sum(calibrated.at(-1)) > sum(gradient.at(-1)) ? "calibrated" : "gradient"; // on one ray: labels part
      for (const [name, way] of Object.entries({ gradient, calibrated })) {
        const [style, [x, y]] = [`--shade: ${data.colours[name]}`, way.at(-1)];
        draw("path", { d: line(way, box), class: "way", style }, box.marks);
        draw("circle", { cx: box.x(x), cy: box.y(y), r: 5, class: "end", style }, box.marks);
      }
      draw("rect", { x: box.x(start[0]) - 6, y: box.y(start[1]) - 6, width: 12, height: 12, class: "start" }, box.marks);
      for (const [name, way] of Object.entries({ gradient, calibrated })) { // over the start, which may lie at the end
        const [x, y] = way.at(-1);
        draw("text", { x: box.x(x) + 9, y: box.y(y) + (name === farther ? -4 : 16), class: "note" }, box.marks, name);
      }
      const ends = [calibrated, gradient].map((way) => lossesOfStates(way.at(-1), data));
      said.textContent = `Log-loss at the start ${fixed(lossesOfStates(start, data).logLoss, 3)}. ` +
        `Calibration ends at log-loss ${fixed(ends[0].logLoss, 3)}, joint log-likelihood of a row ${fixed(ends[0].joint, 2)}; ` +
        `gradient steps at ${fixed(ends[1].logLoss, 3)} and ${fixed(ends[1].joint, 2)}.`;
    }

    show(0);
  }

  // ---- a row of iris, features of which are hidden ----

  function gaps(figure, data) {
    const controls = element("div", { className: "controls" });
    const pick = element("select");
    data.rows.forEach((_, i) => pick.append(new Option(`flower ${i + 1}, ${data.classes[data.labels[i]]}`, i)));
    controls.append(element("label", {}, element("span", {}, "row"), pick));
    const boxes = data.features.map((feature, j) => {
      const input = element("input", { type: "checkbox" });
      const value = element("output");
      controls.append(element("label", {}, input, element("span", {}, `hide ${feature}`), value));
      input.addEventListener("input", show);
      return { input, value, j };
    });
    pick.addEventListener("input", show);
    const bars = element("div", { className: "bars" });
    const scorer = window.rcpkgScorer(data.scorer);
    figure.prepend(controls, bars);

    function show() {
      const row = Number(pick.value);
      const pattern = sum(boxes.map(({ input, j }) => (input.checked ? 2 ** j : 0)));
      for (const { input, value, j } of boxes) {
        const there = data.expected[row][pattern][j];
        value.textContent = input.checked ? `${fixed(there, 1)} cm expected` : `${fixed(there, 1)} cm`;
      }
      bars.replaceChildren(...data.classifiers.map((name, k) => {
        const seen = data.rows[row].map((value, j) => (boxes[j].input.checked ? null : value));
        const P = k ? data.posteriors[row][pattern][k - 1] : scorer.predictProba(seen);
        const parts = P.map((p, c) => {
          const part = element("span", { className: `class-${c} part` });
          part.style.width = `${100 * p}%`;
          return part;
        });
        const words = P.map((p, c) => `${data.classes[c]} ${fixed(100 * p, 0)} %`).join(", ");
        return element("div", {}, element("span", {}, name), element("div", { className: "bar", ariaHidden: "true" }, ...parts),
          element("output", {}, words));
      }));
    }

    show();
  }

  const kinds = { front, clouds, leaf, gaps };

  function start() {
    for (const figure of document.querySelectorAll("figure.moving")) {
      kinds[figure.dataset.picture](figure, JSON.parse(figure.querySelector("script").textContent));
    }
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
  return { calibrate, lossesOf, ways, lossesOfStates };
})();
