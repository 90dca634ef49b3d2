"""What tables that need not fit in memory cost, on one machine and on local workers (the page
on tables that do not fit, and chapter 9).

Fixed before anything was measured: rows of five classes in twenty dimensions, Gaussian but for a bend of each number
(x to |x|^1.2 with its sign), in Parquet as pyarrow writes it by default, row groups of 10⁵. Each measurement is a
process of its own on one thread a process; ``cpu`` and ``wall`` are seconds, ``peak_mb`` is the largest resident set.

- *One machine* (``rows-one-machine``). The closed forms of `GaussianNB` and `QDA` from Parquet and in
  memory, beside sums by pyarrow with numpy, by polars (its streaming engine; naive Bayes alone), and scikit-learn's
  ``GaussianNB.partial_fit`` on the same batches, each three times in turn, of which the least cpu counts. ``a pass``:
  the difference of fits with 7 and with 2 updates of fixed steps, over 5. ``calibrated``: `RiskCalibration(QDA())`
  by its defaults, beside `SGDClassifier.partial_fit` with log-loss on standardised quadratic features (one pass, and
  five) and gradient boosting by its defaults, in memory, both on 10⁶ rows. ``log_loss`` is that of 10⁵ further rows.
  ``exponent``: of cpu between the sizes 10⁶ and 10⁷. Rows with ``predicted`` are a cost model, c n, with c from the
  largest size.
- *dask-ml* (``rows-dask-ml``; with the Python of ``make peers``). The closed form of naive Bayes from
  Parquet, by `Rows.from_parquet`, by `Rows.from_dask` and by dask-ml's `GaussianNB`, the latter two on dask arrays
  of a block a row group, in one thread; as above otherwise. dask-ml's logistic regression knows two classes only.
- *Workers* (``rows-workers``). Seconds by the clock of a pass over 10⁷ rows in one process over
  blocks in memory, in two processes that know nothing of each other over half of the rows each, and on a `LocalCluster`
  of one and of two workers of one thread, without ``MALLOC_TRIM_THRESHOLD_`` and with it, as Dask sets it; twice in
  turn. ``a_pass_cpu``: seconds of the processor of all that take part, which other work on the machine disturbs less.
  ``load``: other processes that were running at its start, a minute's mean.
- *Overheads* (``rows-overheads``). Seconds by the clock, the least of ten, of a pass that computes
  nothing and gives each of so many blocks an array of so many kB, which two workers send and the client adds up in
  order; and, with ``dimensions``, of the processor of a pass of QDA, five classes, over 20,000 rows in memory.

"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB as TheirGaussianNB
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from rcbook.experiments.cells import Cell, Row, Study
from rcpkg import QDA, GaussianNB, RiskCalibration, Rows

CLASSES, DIMENSIONS, GROUP = 5, 20, 100_000
SIZES = 10**6, 10**7
PEERS, PREDICTED = 10**6, 10**8
FEW, MANY = 2, 7  # updates
REPETITIONS, ROWS_OF_WORKERS = 2, 10**7
TURNS = 3  # of the closed forms
PAYLOADS, BLOCKS, WIDE, WIDE_ROWS = (1, 400), (10, 100), (20, 50, 100), 20_000
FEATURES = [f"x{j}" for j in range(DIMENSIONS)]
MODELS = {"GaussianNB": GaussianNB(), "QDA": QDA()}


def drawn(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels."""
    rng = np.random.default_rng(0)
    means = rng.normal(scale=0.3, size=(CLASSES, DIMENSIONS))
    factors = np.eye(DIMENSIONS) + 0.08 * rng.normal(size=(CLASSES, DIMENSIONS, DIMENSIONS))
    rng = np.random.default_rng([seed, 1])
    y, X = rng.integers(CLASSES, size=n), rng.normal(size=(n, DIMENSIONS))
    for c in range(CLASSES):
        X[y == c] = X[y == c] @ factors[c].T + means[c]
    return np.sign(X) * np.abs(X) ** 1.2, y


def written(folder: Path, n: int) -> Path:
    """A file of n rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = folder / f"{n}.parquet"
    writer = None
    for k in range(n // GROUP):
        X, y = drawn(GROUP, k)
        table = pa.table({name: X[:, j] for j, name in enumerate(FEATURES)} | {"label": y})
        writer = writer or pq.ParquetWriter(file, table.schema)
        writer.write_table(table)
    writer.close()
    return file


def batches(file: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows and labels of row groups, as little as pyarrow can keep."""
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(file, pre_buffer=False).iter_batches(GROUP):
        X = np.empty((DIMENSIONS, batch.num_rows))
        for j in range(DIMENSIONS):
            X[j] = batch.column(j).to_numpy()
        yield X.T, batch.column(DIMENSIONS).to_numpy()


def in_memory(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """All rows and labels."""
    import pyarrow.parquet as pq

    n = pq.ParquetFile(file).metadata.num_rows
    X, y, start = np.empty((n, DIMENSIONS)), np.empty(n, dtype=int), 0
    for part, labels in batches(file):
        X[start : start + len(labels)], y[start : start + len(labels)] = part, labels
        start += len(labels)
    return X, y


def summed(file: Path, full: bool) -> None:
    """Counts, sums and sums of products of the classes, by numpy."""
    total = 0.0
    for X, y in batches(file):
        for c in range(CLASSES):
            Z = X[y == c]
            total = total + (Z.T @ Z if full else (Z * Z).sum(axis=0)) + Z.sum(axis=0)


def by_polars(file: Path) -> None:
    """Counts, sums and sums of squares of the classes, by polars."""
    import polars as pl

    sums = [of for x in FEATURES for of in (pl.col(x).sum(), (pl.col(x) ** 2).sum().alias(f"{x}²"))]
    pl.scan_parquet(file).group_by("label").agg(pl.len(), *sums).collect(engine="streaming")


def partial_fits(file: Path, model: Any, change: Callable[[np.ndarray], np.ndarray], passes: int = 1) -> Any:
    """A model of scikit-learn, batch by batch."""
    for _ in range(passes):
        for X, y in batches(file):
            model.partial_fit(change(X), y, classes=np.arange(CLASSES))
    return model


class Quadratic:
    """Standardised quadratic features, by the means and scales of the first batch."""

    def __init__(self, file: Path) -> None:
        self.polynomial = PolynomialFeatures(2, include_bias=False)
        self.scaler = StandardScaler().fit(self.polynomial.fit_transform(next(batches(file))[0]))

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return self.scaler.transform(self.polynomial.transform(X))


def group_of(file: Path, k: int) -> np.ndarray:
    """The numbers of a row group, the label last."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(file, pre_buffer=False).read_row_group(k).to_pandas().to_numpy(dtype=float)


def of_dask(file: Path, theirs: bool) -> Any:
    """`GaussianNB` on dask arrays, a block a row group, in this thread: ours, or ``theirs``, dask-ml's."""
    import dask
    import dask.array as da
    import pyarrow.parquet as pq

    groups = pq.ParquetFile(file).num_row_groups
    shape = GROUP, DIMENSIONS + 1
    read = [da.from_delayed(dask.delayed(group_of)(file, k), shape, float) for k in range(groups)]
    table = da.concatenate(read)
    X, y = table[:, :DIMENSIONS], table[:, DIMENSIONS]
    with dask.config.set(scheduler="synchronous"):
        if not theirs:
            return GaussianNB().fit(Rows.from_dask(X, y))
        from dask_ml.naive_bayes import GaussianNB as DaskGaussianNB

        model = DaskGaussianNB(classes=np.arange(CLASSES)).fit(X, y)
        learnt = "class_prior_", "theta_", "sigma_"  # which fit only describes
        vars(model).update(zip(learnt, dask.compute(*(getattr(model, name) for name in learnt))))
        return model


def published(max_iter: int) -> RiskCalibration:
    """So many updates, each a pass."""
    return RiskCalibration.as_published(QDA(), max_iter=max_iter, stopping="none")


def measured(run: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """Seconds, and what the run gives."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = run()
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}, result


def one(job: str, engine: str, file: Path) -> dict[str, Any]:
    """A measurement, in this process."""
    test, labels = drawn(GROUP, 10**9)
    if engine == "memory":
        X, y = in_memory(file)

        def fit(model: Any) -> Any:
            return model.fit(X, y)
    else:

        def fit(model: Any) -> Any:
            return model.fit(Rows.from_parquet(file, "label"))

    more, predict = {}, None
    if job == "a pass":
        few, _ = measured(lambda: fit(published(FEW)))
        many, _ = measured(lambda: fit(published(MANY)))
        found = {name: (many[name] - few[name]) / (MANY - FEW) for name in few}
    elif engine in ("Parquet", "memory") and job in MODELS:
        found, model = measured(lambda: fit(MODELS[job]))
        predict = model.predict_proba(test)
    elif engine == "pyarrow and numpy":
        found, _ = measured(lambda: summed(file, job == "QDA"))
    elif engine == "polars":
        found, _ = measured(lambda: by_polars(file))
    elif engine == "partial_fit":
        found, _ = measured(lambda: partial_fits(file, TheirGaussianNB(), np.asarray))
    elif engine in ("dask", "dask-ml"):
        found, model = measured(lambda: of_dask(file, engine == "dask-ml"))
        predict = np.asarray(model.predict_proba(test))
    elif engine.startswith("SGDClassifier"):
        change, passes = Quadratic(file), int(engine.split()[1])
        sgd = SGDClassifier(loss="log_loss", random_state=0)
        found, model = measured(lambda: partial_fits(file, sgd, change, passes))
        predict = model.predict_proba(change(test))
    elif engine == "gradient boosting":
        X, y = in_memory(file)
        found, model = measured(lambda: HistGradientBoostingClassifier(random_state=0).fit(X, y))
        predict = model.predict_proba(test)
    else:
        found, model = measured(lambda: fit(RiskCalibration(QDA())))
        more = {"updates": model.n_iter_, "stop": model.stop_reason_}
        predict = model.predict_proba(test)
        more["log_loss_closed_form"] = log_loss(labels, fit(QDA()).predict_proba(test))
    if predict is not None:
        more["log_loss"] = log_loss(labels, predict)
    return found | {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024} | more


def apart(*arguments: Any) -> subprocess.Popen:
    """A process of its own that measures."""
    command = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen) -> dict[str, Any]:
    """What it has found."""
    out, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{process.args} failed")
    return json.loads(out.splitlines()[-1])


def one_machine(folder: Path) -> Iterator[dict[str, Any]]:
    """The rows of the first table."""
    jobs = [
        ("GaussianNB", ["Parquet", "memory", "pyarrow and numpy", "polars", "partial_fit"]),
        ("QDA", ["Parquet", "memory", "pyarrow and numpy"]),
        ("a pass", ["Parquet", "memory"]),
        ("calibrated", ["Parquet"]),
    ]
    first: dict[tuple[str, str], float] = {}
    for n in SIZES:
        file = written(folder, n)
        for job, engines in jobs:
            answers: dict[str, list[dict[str, Any]]] = {engine: [] for engine in engines}
            for _ in range(TURNS if job in MODELS else 1):
                for engine in engines:
                    answers[engine].append(answer(apart(job, engine, file)))
            for engine in engines:
                found = min(answers[engine], key=lambda of: of["cpu"])
                yield {"n": n, "job": job, "engine": engine, **found}
                least = first.setdefault((job, engine), found["cpu"])
                if n == SIZES[-1]:
                    exponent = np.log(found["cpu"] / least) / np.log(n / SIZES[0])
                    model = {"cpu": found["cpu"] * PREDICTED / n, "exponent": exponent, "predicted": True}
                    yield {"n": PREDICTED, "job": job, "engine": engine, **model}
        file.unlink()
    file = written(folder, PEERS)
    for engine in ("SGDClassifier 1", "SGDClassifier 5", "gradient boosting"):
        yield {"n": PEERS, "job": "calibrated", "engine": engine, **answer(apart("calibrated", engine, file))}


def dask_ml(folder: Path) -> Iterator[dict[str, Any]]:
    """The rows of the table that needs dask-ml."""
    engines = "Parquet", "dask", "dask-ml"
    for n in SIZES:
        file = written(folder, n)
        turns = [[answer(apart("GaussianNB", engine, file)) for engine in engines] for _ in range(TURNS)]
        for engine, of_engine in zip(engines, zip(*turns)):
            yield {"n": n, "engine": engine, **min(of_engine, key=lambda of: of["cpu"])}
        file.unlink()


def half_or_all(file: Path, part: int, parts: int) -> dict[str, float]:
    """A pass over blocks in memory, all or a share of them."""
    X, y = in_memory(file)
    of_part = (A[part * len(A) // parts : (part + 1) * len(A) // parts] for A in (X, y))
    rows = Rows.from_arrays(*of_part, block_size=GROUP)
    return a_pass_over(rows)


@contextmanager
def local(n_workers: int, trims: bool = False) -> Iterator[Any]:
    """A client of workers of one thread, whose allocator ``trims`` as Dask has it, or not."""
    import dask
    from distributed import Client, LocalCluster

    environ = dict(dask.config.get("distributed.nanny.pre-spawn-environ"))
    if not trims:
        environ.pop("MALLOC_TRIM_THRESHOLD_", None)
    given = {"n_workers": n_workers, "threads_per_worker": 1, "memory_limit": 0, "dashboard_address": ":0"}
    with (
        dask.config.set({"distributed.nanny.pre-spawn-environ": environ}),
        LocalCluster(**given) as cluster,
        Client(cluster) as client,
    ):
        yield client


def on_workers(file: Path, n_workers: int, trims: int) -> dict[str, float]:
    """A pass on workers that hold the blocks."""
    import dask.dataframe as dd

    with local(n_workers, bool(trims)) as client:
        rows = Rows.from_dask(dd.read_parquet(file, split_row_groups=True), label="label")
        return a_pass_over(rows, lambda: sum(client.run(time.process_time).values()))


def a_pass_over(rows: Rows, elsewhere: Callable[[], float] = lambda: 0.0) -> dict[str, float]:
    """Seconds of a pass by the clock, and of the processor, with those that others have spent ``elsewhere``."""
    published(1).fit(rows)  # so that the blocks are there
    found = {}
    for updates in (FEW, MANY):
        before = elsewhere()
        found[updates], _ = measured(lambda: published(updates).fit(rows))  # noqa: B023
        found[updates]["cpu"] += elsewhere() - before
    return {name: (found[MANY][name] - found[FEW][name]) / (MANY - FEW) for name in ("wall", "cpu")}


def workers(folder: Path) -> Iterator[dict[str, Any]]:
    """The rows of the second table."""
    file = written(folder, ROWS_OF_WORKERS)
    for repetition in range(REPETITIONS):
        for how, processes in [
            ("one process", [("share", 0, 1)]),
            ("two processes", [("share", 0, 2), ("share", 1, 2)]),
            ("LocalCluster, 1 worker", [("workers", 1, 0)]),
            ("LocalCluster, 2 workers", [("workers", 2, 0)]),
            ("LocalCluster, 2 workers, trimming", [("workers", 2, 1)]),
        ]:
            load = os.getloadavg()[0]
            started = [apart(*arguments, file) for arguments in processes]
            answers = [answer(process) for process in started]
            taken = {"a_pass": max(of["wall"] for of in answers), "a_pass_cpu": sum(of["cpu"] for of in answers)}
            yield {"n": ROWS_OF_WORKERS, "how": how, "repetition": repetition, "load": load} | taken


class Nothing(NamedTuple):
    """A task that computes nothing and gives so many kB."""

    kilobytes: int

    def __call__(self, block: Any) -> np.ndarray:
        return np.zeros(128 * self.kilobytes)


def overheads(folder: Path) -> Iterator[dict[str, Any]]:
    """The rows of the third table."""
    import dask.array as da

    with local(2):
        for blocks in BLOCKS:
            rows = Rows.from_dask(da.zeros((10 * blocks, 1), chunks=(10, 1)), da.zeros(10 * blocks, chunks=10))
            for kilobytes in PAYLOADS:
                task = Nothing(kilobytes)
                seconds = min(measured(lambda: rows.sum(task))[0]["wall"] for _ in range(10))  # noqa: B023
                yield {"blocks": blocks, "kilobytes": kilobytes, "seconds": seconds, "load": os.getloadavg()[0]}
    rng = np.random.default_rng(0)
    for d in WIDE:
        rows = Rows.from_arrays(rng.normal(size=(WIDE_ROWS, d)), rng.integers(CLASSES, size=WIDE_ROWS))
        few, many = (measured(lambda: published(k).fit(rows))[0]["cpu"] for k in (FEW, MANY))  # noqa: B023
        yield {"dimensions": d, "seconds": (many - few) / (MANY - FEW), "load": os.getloadavg()[0]}


TABLES = {"one_machine": one_machine, "dask_ml": dask_ml, "workers": workers, "overheads": overheads}
OF_CLOCKS = ("cpu", "wall", "peak_mb", "exponent", "load", "a_pass", "a_pass_cpu", "seconds")


def measure(cell: Cell, seed: int) -> list[Row]:
    """A table, one measurement after the other, as they must not disturb each other."""
    with tempfile.TemporaryDirectory() as folder:
        return list(TABLES[cell.row](Path(folder)))


for name in TABLES:
    Study(f"rows-{name.replace('_', '-')}", rows=(name,), protocol=measure, metered=OF_CLOCKS, tolerance=1e-5)


if __name__ == "__main__":
    what, *arguments, path = sys.argv[1:]
    if what == "share":
        answered = half_or_all(Path(path), *map(int, arguments))
    elif what == "workers":
        answered = on_workers(Path(path), *map(int, arguments))
    else:
        answered = one(what, *arguments, Path(path))
    print(json.dumps(answered))
