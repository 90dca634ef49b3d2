// The posteriors of a fitted model from what its scorer's to_json wrote: rcpkgScorer(JSON.parse(text)).predictProba(row).
// A row has numbers, codes or names, and null or NaN where values are missing. No library is needed.
"use strict";
globalThis.rcpkgScorer = (() => {
  const total = (values) => values.reduce((a, b) => a + b, 0);
  const number = (value) => (value === null ? -Infinity : value); // of logarithms
  const missing = (value) => value === null || value === undefined || Number.isNaN(value);
  const logSum = (values, top = Math.max(...values)) => // the largest first, so that nothing overflows
    top === -Infinity ? top : top + Math.log(total(values.map((v) => Math.exp(v - top))));
  const kinds = {
    gaussian({ mean, covariance, shared, independent }, row) {
      const seen = [...row.keys()].filter((j) => !missing(row[j]));
      return mean.map((mu, y) => {
        const S = shared ? covariance : covariance[y];
        if (independent) return -0.5 * total(seen.map((j) => (row[j] - mu[j]) ** 2 / S[j] + Math.log(2 * Math.PI * S[j])));
        const L = [], z = []; // L of Σ_oo = LLᵀ, row by row, and L⁻¹(x − μ)_o
        return total(seen.map((j, a) => {
          L.push([]);
          const rest = (b) => total(L[b].slice(0, b).map((v, k) => v * L[a][k]));
          for (let b = 0; b < a; b += 1) L[a].push((S[j][seen[b]] - rest(b)) / L[b][b]);
          L[a].push(Math.sqrt(S[j][j] - total(L[a].map((v) => v * v))));
          z.push((row[j] - mu[j] - total(z.map((v, k) => v * L[a][k]))) / L[a][a]);
          return -0.5 * (z[a] * z[a] + Math.log(2 * Math.PI)) - Math.log(L[a][a]);
        }));
      });
    },
    table({ states, parents, log_prob }, row) {
      const places = row.map((value, j) => states[j].indexOf(value)), sizes = states.map((of) => of.length);
      const nowhere = log_prob[0].map((_, k) => log_prob.every((cells) => cells[k] === null));
      return log_prob.map((cells) => {
        let [start, known, factors] = [0, 0, []]; // functions of the states of features that are missing
        parents.forEach((of, j) => {
          const members = [...of, j], first = start, open = members.filter((f) => places[f] < 0);
          const cell = (state) => first + members.reduce((k, f) => k * sizes[f] + (places[f] < 0 ? state[f] : places[f]), 0);
          if (open.length) factors.push({ open, value: (state) => number(cells[cell(state)]) });
          else known += nowhere[cell()] ? 0 : number(cells[cell()]);
          start += members.reduce((size, f) => size * sizes[f], 1);
        });
        places.forEach((place, v) => { // each is summed out, in a function of its neighbours that remembers its values
          const touched = place < 0 ? factors.filter(({ open }) => open.includes(v)) : [], values = new Map();
          const open = [...new Set(touched.flatMap((factor) => factor.open))].filter((f) => f !== v);
          const sum = (state) => logSum(states[v].map((_, k) => total(touched.map((f) => f.value({ ...state, [v]: k })))));
          const value = (state, key = open.map((f) => state[f]).join()) =>
            values.get(key) ?? values.set(key, sum(state)).get(key);
          if (touched.length) factors = [...factors.filter((factor) => !touched.includes(factor)), { open, value }];
        });
        return known + total(factors.map(({ value }) => value({})));
      });
    },
    binary: ({ binarize, log_prob }, row) => kinds.table({ log_prob, states: row.map(() => [false, true]),
      parents: row.map(() => []) }, row.map((value) => (missing(value) ? null : value > binarize))),
  };
  return ({ classes, log_prior, parts }) => {
    const terms = (row) => parts.map((part) => kinds[part.kind](part, part.columns.map((j) => row[j])));
    const logJoint = (row) => terms(row).reduce((joint, term) => joint.map((v, y) => v + term[y]), log_prior.map(number));
    const normalised = (joint, all = logSum(joint)) =>
      joint.map((v, y) => Math.exp(all === -Infinity ? number(log_prior[y]) : v - all));
    return { classes, logJoint, predictProba: (row) => normalised(logJoint(row)) };
  };
})();
