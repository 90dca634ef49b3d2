"""What the library takes beside the bars of speed that it is held to; no page prints it, `summary` says what came out.

Fixed before the stored run. Times are seconds of the processor, on one thread. A ratio is our time over the other's:

- *An iteration* of risk-based calibration, which is the step, the parameters and one pass for densities, losses and
  weighted statistics, over a fit and a prediction by scikit-learn: medians of `ROUNDS` rounds in which the two take
  turns, on rows that are drawn, (n, d, r) as named. Bars: .7, .8 and .4 for QDA, .25 for naive Bayes.
- *A choice*: `RiskCalibrationCV` over the same call of the library at the commit `FORMER`; bar 2. Each of `MODELS`
  meets each table of the registry, in its variant "original", of at most 1,000 rows and 60 columns: beyond these, one
  table of 166 columns takes longer than all others. Classes of one row, constant columns and columns with a gap are
  left out; a table with fewer than two other columns has no row. Categories are ranks; naive Bayes gets five bins, the
  others standardised columns. Calls: the default one; nine weights of the pooled target by leave-one-out; the same by
  five folds. What each library chose, and of how many candidates, is beside its time.
- *The README's example* of that commit, on the wine data, in whole processes of both libraries; bar 1.2.

Each library has processes of its own. They take turns; the least of three repeats counts, of two where a fit takes more
than five seconds. The environment variable RCPKG_FORMER names a worktree of the former commit. Tests compute no cell
again: meters give the times, and what was chosen stands beside choices of a library that is not there.

"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from inspect import getsource
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import gmean
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import CategoricalNB as SklearnCategoricalNB
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import rcpkg
from rcbook import datasets
from rcbook.experiments.cells import Cell, Grid, Row, Study
from rcbook.experiments.studies.honest_comparison import KMeansBins
from rcpkg.calibration import Objective
from rcpkg.families import one_hot

FORMER = "5bb10a8c3f3502fa8681edb3f00e29e71d1b544b"
ROUNDS, REPEATS, LONG = 15, 3, 5.0  # seconds
MOST_ROWS, MOST_COLUMNS = 1000, 60
ITERATIONS = {("6435, 36, 6", "QDA"): 0.7, ("5620, 47, 10", "QDA"): 0.8, ("20000, 16, 26", "QDA"): 0.4}  # bars
ITERATIONS |= {(size, "CategoricalNB"): 0.25 for size in ("6435, 36, 6", "20000, 16, 26")}
MODELS: dict[str, dict[str, Any]] = {"QDA": {}, "LDA": {}, "GaussianNB": {}, "CategoricalNB": {"prior_strength": 1.0}}
POOLED = {"target": "pooled", "target_weights": [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100]}
CALLS = {"default": {}, "leave-one-out": POOLED | {"cv": "loo"}, "five folds": POOLED | {"cv": 5}}


def gaussian_rows(n: int, d: int, r: int) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping Gaussian classes, well-conditioned for any number of features."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % r)
    factors = np.eye(d) + 0.5 * rng.standard_normal((r, d, d)) / np.sqrt(d)
    X = rng.standard_normal((n, d))
    for c in range(r):
        X[y == c] = rng.standard_normal(d) + X[y == c] @ factors[c].T
    return X, y


def categorical_rows(n: int, d: int, r: int, states: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Codes that depend on the class."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % r)
    return (rng.integers(states, size=(n, d)) + (rng.uniform(size=(n, d)) < 0.3) * y[:, None]) % states, y


def iteration(model: Any, X: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    """A function that makes one iteration, from the closed form of the model."""
    X, y = model._check_X_y(X, y)
    model._prepare(X)
    objective = Objective(model.family_, model.family_.encode(X), one_hot(y, len(model.classes_)))
    start = objective.evaluate(objective.start)
    return lambda: objective.evaluate(objective.moved(start.statistics, start.gradient, 0.1))


def medians(*functions: Callable[[], Any]) -> np.ndarray:
    """Median seconds of the processor for each function; they take turns."""
    times = np.empty((ROUNDS, len(functions)))
    with threadpool_limits(1):
        for function in functions:
            function()
        for i, j in np.ndindex(times.shape):
            start = time.process_time()
            functions[j]()
            times[i, j] = time.process_time() - start
    return np.median(times, axis=0)


def beside_sklearn(size: str, kind: str) -> np.ndarray:
    """Seconds of our iteration, and of a fit and prediction by scikit-learn."""
    draw, rival = {
        "QDA": (gaussian_rows, QuadraticDiscriminantAnalysis()),
        "CategoricalNB": (categorical_rows, SklearnCategoricalNB()),
    }[kind]
    X, y = draw(*map(int, size.split(", ")))
    model = getattr(rcpkg, kind)(**MODELS[kind])
    return medians(iteration(model, X, y), lambda: rival.fit(X, y).predict_log_proba(X))


def libraries() -> dict[str, Path]:
    """The folders of this library and of the former one."""
    folder = os.environ.get("RCPKG_FORMER", "")
    command = ["git", "-C", folder, "diff", "--quiet", FORMER, "--", ":/rcpkg", ":/README.md"]
    if subprocess.run(command, capture_output=True).returncode:
        raise ValueError(
            f"RCPKG_FORMER must name a folder with the library at commit {FORMER}, as `git worktree add --detach "
            f"FOLDER {FORMER[:7]}` makes it; got {folder!r}"
        )
    return {"ours": Path(rcpkg.__file__).parents[1], "former": Path(folder).resolve()}


def python(folder: Path, code: str, **options: Any) -> subprocess.Popen:
    """A process that runs code with the library of a folder, on one thread, and keeps what it compiles."""
    environment = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": ""}
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", code]
    return subprocess.Popen(command, env=os.environ | environment, text=True, **{"cwd": folder} | options)


def answer() -> None:
    """Fit what each line asks for; a process runs this function alone, with nothing but the library of its folder."""
    import json
    import sys
    import time

    import numpy as np

    import rcpkg

    print(rcpkg.__file__, flush=True)
    for line in sys.stdin:
        kind, settings, call, X, y = json.loads(line)
        learner, X, y = rcpkg.RiskCalibrationCV(getattr(rcpkg, kind)(**settings), **call), np.array(X), np.array(y)
        start = time.process_time()
        fit = learner.fit(X, y)
        found = {"seconds": time.process_time() - start, "target": str(getattr(fit, "target_", fit.target))}
        found |= {"weight": float(fit.target_weight_), "validation": fit.validation_}
        print(json.dumps(found | {"candidates": len(fit.cv_results_)}), flush=True)


@cache
def answering(folder: Path) -> subprocess.Popen:
    """A process that answers with the library of a folder until this one ends."""
    process = python(folder, f"{getsource(answer)}\n\nanswer()", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if not Path(process.stdout.readline().strip()).is_relative_to(folder):
        raise RuntimeError(f"a process that should take rcpkg from {folder} has taken another")
    return process


def quickest(cell: Cell, call: str, run: Callable[[Path], dict[str, Any]]) -> list[Row]:
    """A row for each library, of its quickest run; they take turns."""
    runs: dict[str, list[dict[str, Any]]] = {library: [] for library in libraries()}
    for repeat in range(REPEATS):
        if repeat < 2 or max(one["seconds"] for found in runs.values() for one in found) <= LONG:
            for library, folder in libraries().items():
                runs[library].append(run(folder))
    return rows(cell, call, {library: min(found, key=itemgetter("seconds")) for library, found in runs.items()})


def rows(cell: Cell, call: str, found: dict[str, dict[str, Any]]) -> list[Row]:
    """What was found, by library, as rows of the table."""
    case = {"case": cell.row, "model": cell.method, "call": call, "bar": cell.arguments["bar"]}
    return [case | {"library": library} | columns for library, columns in found.items()]


def iterate(cell: Cell, seed: int) -> list[Row]:
    """Our iteration, and scikit-learn's fit and prediction."""
    ours, theirs = beside_sklearn(cell.row, cell.method).tolist()
    return rows(cell, "iteration", {"ours": {"seconds": ours}, "scikit-learn": {"seconds": theirs}})


def choose(cell: Cell, seed: int) -> list[Row]:
    """The calls for a table and a model; none if the table has fewer than two columns that count."""
    bunch = datasets.load(cell.row)
    y = np.unique(bunch.target, return_inverse=True)[1]
    kept = np.bincount(y)[y] > 1
    X = bunch.data[kept][:, np.ptp(bunch.data[kept], axis=0) > 0]  # a gap makes the range NaN
    if X.shape[1] < 2:
        return []
    X = (KMeansBins() if cell.method == "CategoricalNB" else StandardScaler()).fit_transform(X)
    data = X.tolist(), y[kept].tolist()

    def fitted(call: str, folder: Path) -> dict[str, Any]:
        process = answering(folder)
        print(json.dumps([cell.method, MODELS[cell.method], CALLS[call], *data]), file=process.stdin, flush=True)
        return json.loads(process.stdout.readline())

    return [row for call in CALLS for row in quickest(cell, call, partial(fitted, call))]


def run_example(cell: Cell, seed: int) -> list[Row]:
    """The example of the former README."""
    (code,) = re.findall(r"```python\n(.*?)```", (libraries()["former"] / cell.row).read_text("utf-8"), re.DOTALL)
    wine = load_wine(as_frame=True)

    def run(folder: Path) -> dict[str, Any]:
        process = python(folder, code, cwd=place, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"the example does not run with the library of {folder}")
        return {"seconds": used.ru_utime + used.ru_stime}

    with TemporaryDirectory() as place:
        wine.data.assign(label=wine.target_names[wine.target]).to_csv(Path(place, "data.csv"), index=False)
        return quickest(cell, "example", run)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Of each call: how many ratios, their geometric mean, the greatest, and the cases whose ratio is above the bar."""
    side = table.library.where(table.library == "ours", "other")
    times = table.assign(side=side).pivot(index=["call", "case", "model", "bar"], columns="side", values="seconds")
    ratios = (times.ours / times.other).rename("ratio").reset_index()
    ratios["above"] = (ratios.case + " " + ratios.model).str.strip().where(ratios.ratio > ratios.bar)
    return ratios.groupby("call").agg(
        cases=("ratio", "size"),
        mean=("ratio", gmean),
        greatest=("ratio", "max"),
        above=("above", lambda names: names.dropna().tolist()),
    )


def tables() -> list[str]:
    """The tables on which weights are chosen."""
    known = datasets.table().query("variant == 'original'")
    return known.name[(known.n_rows <= MOST_ROWS) & (known.n_features <= MOST_COLUMNS)].tolist()


Study(
    "price-of-speed",
    Grid(
        rows=dict.fromkeys(size for size, _ in ITERATIONS),
        methods=lambda cell: [kind for size, kind in ITERATIONS if size == cell.row],
        protocol=iterate,
        arguments=lambda cell: {"bar": ITERATIONS[cell.row, cell.method]},
    ),
    Grid(rows=tables, methods=MODELS, protocol=choose, arguments={"bar": 2.0, "former": FORMER}),
    Grid(rows=("README.md",), protocol=run_example, arguments={"bar": 1.2, "former": FORMER}),
    metered=("case", "model", "call", "bar", "library", "seconds", "target", "weight", "validation", "candidates"),
)
