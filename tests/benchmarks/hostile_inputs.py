"""What comes of inputs that nobody prepared, given to every estimator: writes a table of outcomes, a row an estimator.

The pairs, and what counts as which outcome, are those of `tests/rcpkg/hostile.py`; pairs that are neither fine nor
refused at the door are printed. Estimators that the table holds are left as they are. To regenerate, without the old
table:

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=.:tests/rcpkg python tests/benchmarks/hostile_inputs.py \
        data/results/benchmark_hostile_inputs.csv
"""

import sys
from collections import Counter
from pathlib import Path

import pandas as pd
from hostile import DEPTHS, ESTIMATORS, FINE, REFUSED, SILENT, TIMEOUT, cases, outcome, pairs, title
from rcbook.experiments.runner import commit, environment, origin
from tqdm import tqdm

if __name__ == "__main__":
    path, inputs, counts = Path(sys.argv[1]), cases(), {}
    done = pd.read_csv(path, index_col="estimator") if path.exists() else pd.DataFrame()
    for estimator, name in tqdm([(model, name) for model, name in pairs() if title(model) not in done.index]):
        result, message = outcome(estimator, inputs[name])
        counts.setdefault(title(estimator), Counter())[result] += 1
        if result not in (FINE, REFUSED):
            print(f"{result}: {title(estimator)} on {name!r}: {message}", flush=True)
    table = pd.DataFrame.from_dict(counts, orient="index", columns=[FINE, REFUSED, DEPTHS, TIMEOUT, SILENT])
    table = table.fillna(0).astype(int).rename_axis("estimator").assign(**origin(commit() | environment()))
    order = [title(model) for model in ESTIMATORS]
    pd.concat([done, table]).reindex(order).to_csv(path, lineterminator="\n")
