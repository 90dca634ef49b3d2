"""Figures and tables of the chapter *Coordinates and curvature*: iterations, conditions, times."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from rcbook.experiments import results
from rcbook.figures import look
from rcbook.trials.coordinates_and_curvature import LIMIT
from rcpkg import LDA


def level_sets() -> tuple[Figure, dict[str, float]]:
    """Level sets of one logistic regression in four systems of coordinates, with the path of steepest descent."""
    rng = np.random.default_rng(94)
    y = np.repeat([0, 1], 200)
    X = rng.normal(size=(400, 2)) @ np.array([[1.0, 0.85], [0.0, 0.53]]) + 0.6 * np.outer(y - 0.5, [1, 0.2])
    X = (X - X.mean(axis=0)) * [1.0, 2.5]
    sign = 2.0 * y - 1

    def value(w):
        """Mean log-loss of coefficients w, of shape (…, 2)."""
        return np.logaddexp(0, -sign * (w @ X.T)).mean(axis=-1)

    def slope_and_curvature(w):
        p = 1 / (1 + np.exp(-X @ w))
        return X.T @ (p - y) / len(y), (X.T * (p * (1 - p))) @ X / len(y)

    best = np.zeros(2)
    for _ in range(30):  # Newton's method
        g, H = slope_and_curvature(best)
        best = best - np.linalg.solve(H, g)
    closed = np.diff(LDA().fit(X, y).predict_log_proba(np.vstack([np.zeros(2), np.eye(2)])), axis=1)[:, 0]
    closed = closed[1:] - closed[0]
    systems = {
        "natural": np.eye(2),
        "closed form": np.diag(np.abs(closed)),
        "curvature": np.diag(np.diag(slope_and_curvature(closed)[1]) ** -0.5),
        "whitened": np.linalg.inv(np.linalg.cholesky(X.T @ X / len(y))).T,
    }
    figure, axes = plt.subplots(1, 4, figsize=(9.2, 2.7), layout="constrained")
    conditions = {}
    u = np.linspace(0, 2 * np.pi, 200)
    for ax, (name, S) in zip(axes, systems.items()):
        H = S.T @ slope_and_curvature(best)[1] @ S
        values, vectors = np.linalg.eigh(H)
        conditions[name] = values[1] / values[0]
        z = -np.linalg.solve(S, best)  # the start is w = 0, the optimum the origin
        path = [z]
        for _ in range(40):
            path.append(path[-1] - S.T @ slope_and_curvature(best + S @ path[-1])[0] / values[1])
        path = np.array(path)
        size = np.sqrt(z @ H @ z)
        for share in (0.25, 0.5, 1.0, 1.5):
            ellipse = vectors / np.sqrt(values) @ (share * size * np.array([np.cos(u), np.sin(u)]))
            ax.plot(*ellipse, color="0.7", linewidth=1)
        ax.plot(*path.T, linewidth=1, markersize=3, **look("gradient"))
        ax.plot(0, 0, "+", color="black", markersize=9)
        reached = value(best + path @ S.T) - value(best)
        steps = np.flatnonzero(reached < 0.01 * reached[0])
        taken = f"{steps[0]} step{'s' if steps[0] > 1 else ''}" if len(steps) else "over 40 steps"
        ax.set(title=f"{name}\nκ = {conditions[name]:.1f}, {taken}", xticks=[], yticks=[])
        ax.set_aspect("equal", adjustable="datalim")
    return figure, conditions


def speed() -> tuple[tuple[str, str], pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Processor seconds of our solver and of scikit-learn's, case by case."""
    speed = results("study", "race-to-the-optimum")
    gaps = ("0.001", "1e-06")
    ours = speed[speed.solver == "ours"].set_index(["dataset", "model", "penalty"])
    rest = speed[speed.solver != "ours"]
    shown = ours[["n", "columns", "r"]].copy()
    shown.columns = pd.MultiIndex.from_product([["size"], ["rows", "columns", "classes"]])
    for g in gaps:
        seconds = rest.pivot_table(
            index=["dataset", "model", "penalty"], columns="solver", values=f"seconds_{g}", dropna=False
        ).reindex(ours.index)
        shown[f"gap {g}", "theirs"] = seconds.min(axis=1)
        shown[f"gap {g}", "ours"] = ours[f"seconds_{g}"]
        shown[f"gap {g}", "ratio"] = ours[f"ratio_{g}"]
    shown["choice of", "model"] = ours.joint_seconds
    return gaps, ours, rest, shown


def ratios_of_times(gaps: tuple[str, str], ours: pd.DataFrame, shown: pd.DataFrame, memory: pd.DataFrame) -> None:
    """Ratios of times in the geometric mean, the cases above 1, and ratios of memory."""
    for g in gaps:
        ratio = ours[f"ratio_{g}"]
        print(f"gap {g}: geometric mean {np.exp(np.log(ratio).mean()):.2f} over {len(ratio)} cases; above 1:")
        for case in ratio.index[ratio > 1]:
            mine, theirs = shown.loc[case, f"gap {g}"][["ours", "theirs"]]
            print(f"  {' '.join(case)}: {ratio[case]:.2f} ({mine:.4f} against {theirs:.4f} seconds)")
        whole = ratio * (1 + ours.joint_seconds / ours[f"seconds_{g}"])
        print(f"  with the choice of the joint model: geometric mean {np.exp(np.log(whole).mean()):.2f}")
    memory = memory["ours"] / memory["least of five"]
    print(
        f"peak memory over that of the least of five: median {memory.median():.1f}"
        f", greatest {memory.max():.1f} ({' '.join(memory.idxmax())})"
    )


def large_cases(large: pd.DataFrame) -> None:
    """Times on large cases."""
    for fit, of_fit in large.groupby("fit"):
        of_fit = of_fit.set_index("learner")
        ours = of_fit.loc["RiskCalibration"].seconds
        own = of_fit.index.str.contains("RiskCalibration|closed form")
        theirs = of_fit[~own]
        late = ", ".join(theirs.index[~theirs.ended]) or "none"
        ended = theirs[theirs.ended]
        if not len(ended):
            share = ours / theirs.seconds.min()
            print(f"{fit}: less than {share:.2f} of the time of each; none ended")
            continue
        best = ended.loc[ended.log_loss.idxmin()]
        side = "below" if best.ahead > 0 else "above"
        print(
            f"{fit}: {ours / ended.seconds.min():.2f} of the time of "
            f"{ended.seconds.idxmin()}; their least log-loss, of {best.name}, is "
            f"{abs(best.ahead):.5f} {side} ours, standard error "
            f"{best.std_error:.5f}; not ended: {late}"
        )
        equal = of_fit.loc["RiskCalibration, equal states"]
        more = equal.log_loss - best.log_loss
        print(
            f"    equal states, weight {equal.weight:.0f}: "
            f"{equal.seconds / ended.seconds.min():.2f} of the time, log-loss "
            f"{abs(more):.6f} {'above' if more > 0 else 'below'} their least"
        )


def losses_of_streams() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Mean log-loss of the rows of two streams."""
    streamed = results("study", "streams")
    streamed = streamed.rename(columns={"early": "blocks 11 to 40", "late": "last quarter"})
    columns = ["blocks 11 to 40", "last quarter"]
    by_stream = streamed.pivot(index="learner", columns="stream", values=columns)
    by_stream = by_stream.reindex(streamed.learner.unique())
    by_stream["µs a row", ""] = (
        1e6 * streamed.groupby("learner").seconds.sum() / streamed.groupby("learner").rows.sum()
    )
    by_stream = by_stream[[*columns, "µs a row"]]
    by_stream["µs a row"] = by_stream["µs a row"].round(1)
    parts = by_stream.index.str.split(", running class weights")
    by_stream.index = pd.MultiIndex.from_tuples(
        [(name, f"running{where[0]}" if where else "–") for name, *where in parts],
        names=["learner", "class weights"],
    )
    return streamed, by_stream


def relative_to_natural(table: pd.DataFrame, systems: list[str]) -> tuple[float, pd.DataFrame]:
    """Rank correlation of condition numbers and iterations, and the geometric means of both by kind of model, over
    those of the natural coordinates."""
    gaussian = np.where(table.set.str.contains("Gaussian"), "Gaussian NB", "QDA")
    kind = np.where(table.set.str.endswith("NB") & (gaussian == "QDA"), "naive Bayes", gaussian)
    table = table.assign(kind=kind, iterations=table.iterations.clip(1, LIMIT))
    base = table[table.coordinates == "natural"].set_index("set")
    means = {}
    for quantity in "condition", "iterations":
        ratio = np.log(table[quantity] / table.set.map(base[quantity]))
        means[quantity] = np.exp(ratio.groupby([table.kind, table.coordinates]).mean())
    relative = pd.DataFrame(means).rename_axis(columns="ratio of").stack().unstack("coordinates")
    relative = relative.reorder_levels(["ratio of", "kind"]).rename_axis(["ratio of", "model"])
    rows = [(quantity, model) for quantity in means for model in ("naive Bayes", "Gaussian NB", "QDA")]
    shown = relative.loc[rows, systems].map(lambda value: f"{value:#.2g}".rstrip("."))
    return spearmanr(table.condition, table.iterations).statistic, shown
