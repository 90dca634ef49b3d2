"""Figures and tables of the chapter *Risk-based calibration*: boundaries, learning curves, changes."""

import warnings
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

from rcbook.experiments.comparisons import corrected_standard_error
from rcbook.experiments.rescalings import Rescaled, temperature_scaled
from rcbook.experiments.studies import modes_of_calibration as modes
from rcbook.experiments.studies.modes_of_calibration import losses, splits
from rcbook.figures import ink, label_lines, look
from rcbook.freezing import Freezing
from rcbook.simulation import clouds
from rcpkg import QDA, CategoricalNB, GaussianNB, InvalidStatistics, RiskCalibration, plotting
from rcpkg.base import Array
from rcpkg.calibration import Fixed, Safe

LOOKS = {"published": "published", "safe": "safe", "safe, target": "target"}  # of the modes, in rcbook.figures.METHODS
CASE, LOSSES = ["set", "model", "mode"], {"error": "error", "log-loss": "log_loss"}  # columns of the stored runs


def update_in_numbers(x: Any, Y: Any, P: Any, s: Any, new: Any) -> pd.DataFrame:
    """One update of counts and sums of two classes, in the order in which a hand would compute it."""
    steps = {"count before": s[:, 0], "sum before": s[:, 1], "mean before": s[:, 1] / s[:, 0]}
    steps |= {f"posterior P of x = {value:g}": belief for value, belief in zip(x, P)}
    steps |= {f"weight Y − P of x = {value:g}": weight for value, weight in zip(x, Y - P)}
    steps |= {"change of the count": (new - s)[:, 0], "change of the sum": (new - s)[:, 1]}
    steps |= {"count after": new[:, 0], "sum after": new[:, 1], "mean after": new[:, 1] / new[:, 0]}
    table = pd.DataFrame(steps, index=["first class", "second class"]).T.rename_axis("step")
    return table.map("{:.3f}".format).replace("-0.000", "0.000")


def one_update(x: Any, Y: Any, P: Any, s: Any, new: Any) -> Any:
    """The strip of one update: the closed form, the weights of the rows, the new model; Gaussians of variance one."""
    figure, axes = plt.subplots(1, 3, figsize=(8.6, 2.9))
    line, colours, sides = np.linspace(-4.0, 6.0, 201), plotting.palette, ("right", "left")
    old_mean, new_mean = (t[:, 1] / t[:, 0] for t in (s, new))
    for ax, mean in ((axes[0], old_mean), (axes[2], new_mean)):
        for c, name in enumerate(("first class", "second class")):
            ax.plot(line, norm.pdf(line, mean[c]), color=colours[c])
            text = f"{name}\nmean {mean[c]:.2f}".replace("-", "−")
            ax.text(mean[c], 0.41, text, color=ink(colours[c]), ha=sides[c])
            rows = x[Y[:, c] == 1]
            ax.plot(rows, 0 * rows, plotting.markers[c], color=colours[c], clip_on=False, zorder=3)
        ax.axvline(mean.mean(), color="0.2", ymax=0.62)
        ax.text(6.0, 0.3, f"boundary\n{mean.mean():.2f}", color="0.2", ha="right", va="top")
        ax.set(ylim=(0, 0.55), xlim=(-4, 6), yticks=[], xlabel="feature", xticks=[*x])
    axes[2].axvline(old_mean.mean(), color="0.2", ymax=0.62, linestyle=":")
    for (row, c), weight in np.ndenumerate(Y - P):
        place, label = row + 0.36 * (c - 0.5), f"{weight:+.2f}" if abs(weight) >= 0.005 else "0"
        axes[1].bar(place, weight, 0.34, color=colours[c])
        end = "bottom" if weight > 0 else "top"
        axes[1].text(place, weight, label.replace("-", "−"), color=ink(colours[c]), ha="center", va=end)
    axes[1].axhline(0, color="0.2", linewidth=1)
    axes[1].set(ylim=(-0.85, 0.85), yticks=[], xlabel="row, by its feature")
    axes[1].set_xticks(range(len(x)), [f"{value:g}" for value in x])
    for ax, title in zip(axes, ("1. the closed form", "2. the weights Y − P", "3. the new model")):
        ax.set_title(title)
    return figure


def idea() -> tuple[Any, Any]:
    """Boundaries of naive Bayes, rescaled and calibrated, and what happens to two points."""
    rng = np.random.default_rng(40)
    (rows, label), (fresh, fresh_label) = clouds(300, rng), clouds(20_000, rng)
    idea = {
        "closed form": GaussianNB(),
        "its scores rescaled": Rescaled(GaussianNB(), temperature_scaled),
        "calibrated": RiskCalibration(GaussianNB(), step="safe", target="pooled", target_weight=1.0),
    }
    corners = rows.min(axis=0) - 0.4, rows.max(axis=0) + 0.4
    plane = np.stack(np.meshgrid(*np.linspace(*corners, 160).T), axis=-1)
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.4), sharey=True)
    for ax, (name, classifier) in zip(axes, idea.items()):
        classifier.fit(rows, label)
        plotting.DecisionRegionsDisplay.from_estimator(classifier, rows, label, ax=ax)
        # rescaled scores belong to the densities of the closed form
        model = idea["closed form"] if name == "its scores rescaled" else classifier
        joint = model.predict_joint_log_proba(plane.reshape(-1, 2)).reshape(160, 160, 2)
        for c in range(2):
            height = joint[:, :, c] - joint[:, :, c].max()
            ax.contour(
                plane[..., 0],
                plane[..., 1],
                height,
                levels=[-4.5, -2, -0.5],
                colors=plotting.palette[c],
                linestyles="-",
            )
        P = classifier.predict_proba(fresh)
        log_loss = -np.log(P[np.arange(len(fresh)), fresh_label]).mean()
        error = np.mean(P.argmax(axis=1) != fresh_label)
        ax.set(title=f"{name}\n{100 * error:.1f} % wrong, log-loss {log_loss:.3f}", xlabel="first feature")
    axes[0].set_ylabel("second feature")
    return idea, figure


def invalid_steps(binned: Any, y_cancer: Any, X: Any, y: Any) -> tuple[Any, Any, Any]:
    """Training losses of three remedies for steps that leave the models."""
    rows, histories = [], {}
    for title, estimator, D, labels, lr in (
        ("naive Bayes, breast cancer", CategoricalNB(), binned, y_cancer, 1.0),
        ("QDA, iris", QDA(), X, y, 2.0),
    ):
        for choice, step in (("halt", Fixed(lr, "halt")), ("freeze", Freezing(lr)), ("safe", Safe(lr))):
            calibration = RiskCalibration.as_published(estimator, step=step, max_iter=30, stopping="none")
            with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
                history = calibration.fit(D, labels).history_
            histories[title, choice] = history.set_index("iteration")
            last, rises = history.iloc[-1], int((history.log_loss.diff() > 0).sum())
            found = [calibration.n_iter_, last.soft_error, last.error, last.log_loss, rises]
            rows.append([title, choice, *found])
    columns = ["model and data", "choice", "updates", "soft error", "error", "log-loss", "rises"]
    return rows, histories, columns


def curves(calibrate: Any) -> Any:
    """Error and log-loss along published updates, training and test."""

    def losses_along_the_way(X, y, scaler, model, train, test, T=63):
        """Array (updates, 2, 3): updates until invalid, (train, test), losses."""
        prepared, fresh, rows = scaler.fit(X[train]).transform(X), clone(model), []
        labels = np.eye(y.max() + 1)[y[train]]
        try:
            for theta in calibrate(fresh, prepared[train], labels, 0.1, T):
                joint = fresh.log_joint(prepared, theta)
                rows.append([losses(joint[part], y[part]) for part in (train, test)])
        except InvalidStatistics:
            pass
        return np.array(rows)

    figure, axes = plt.subplots(2, 3, figsize=(8.4, 4.8), sharex=True)
    for column, (name, load) in enumerate(modes.SETS.items()):
        X, y = load(return_X_y=True)
        for colour, marker, (title, model) in zip(plotting.palette, plotting.markers, modes.MODELS.items()):
            runs = [losses_along_the_way(X, y, *model, *split) for split in splits(y, 5)]
            common = min(map(len, runs))
            curve = np.mean([run[:common] for run in runs], axis=0)
            for ax, place in zip(axes[:, column], (1, 2)):
                for part, which, line in ((0, "train", "-"), (1, "test", "--")):
                    ax.plot(curve[:, part, place], line, color=colour, label=f"{title}, {which}")
                    if len(curve) < 64:
                        ax.plot(len(curve) - 1, curve[-1, part, place], marker, color=colour, clip_on=False)
        axes[0, column].set_title(name)
        axes[1, column].set_xlabel("updates")
    for row, loss in zip(axes, ("error", "log-loss")):
        row[0].set_ylabel(loss)
        for ax in row:
            ax.set_ylim(bottom=0)
    handles, texts = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside lower center", ncols=3)
    return figure


def ends_of_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Updates and ends of each mode, set by set."""
    endings = {
        "published": {"soft_error": "rose", "invalid": "invalid"},
        "safe": {"converged": "converged", "separable": "separable"},
        "safe, target": {"converged": "converged"},
    }
    course: dict[tuple, dict] = {}
    for (name, model, mode), of_mode in runs[runs["mode"] != modes.CLOSED].groupby(CASE, sort=False):
        kept = of_mode.kept.astype(int)
        row = course.setdefault((name, model), {})
        row[mode, "kept"] = f"{kept.min()}, {kept.median():g}, {kept.max()}"
        row |= {(mode, title): (of_mode.end == reason).sum() for reason, title in endings[mode].items()}
    return pd.DataFrame(course).T


def changes(runs: pd.DataFrame) -> tuple[Any, Any, Any, Any]:
    """Changes of test log-loss and error, with two standard errors."""
    outcomes = {-1: "lower", 0: "undecided", 1: "higher"}
    rows, clear, found = {}, {}, {}
    for (name, model), of_pair in runs.groupby(CASE[:2], sort=False):
        train, test = map(len, next(splits(modes.SETS[name](return_X_y=True)[1], 1)))
        for loss, column in LOSSES.items():
            wide = of_pair.pivot(index="split", columns="mode", values=column)
            row = {modes.CLOSED: f"{wide[modes.CLOSED].mean():.3f}"}
            for mode in modes.MODES:
                values = (wide[mode] - wide[modes.CLOSED]).to_numpy()
                mean, error = values.mean(), corrected_standard_error(values, train, test)
                row[mode] = f"{mean:+.3f} ± {error:.3f}"
                sign = np.sign(mean) * (abs(mean) > 2 * error)
                clear[name, model, loss, mode] = outcomes[int(sign)]
                found.setdefault((loss, mode), []).append((mean, error))
            rows[name, model, loss] = row
    labels = [f"{model}, {name}" for name, model, loss in rows if loss == "error"]
    changes, axes = plt.subplots(1, 2, figsize=(7.6, 4.6), sharey=True)
    for ax, loss in zip(axes, ("log-loss", "error")):
        ax.axvline(0, color="0.4", linewidth=1)
        for which, (mode, method) in enumerate(LOOKS.items()):
            centre, spread = np.transpose(found[loss, mode])
            ax.errorbar(
                centre,
                np.arange(len(labels)) + 0.25 * (which - 1),
                xerr=2 * spread,
                linestyle="",
                capsize=2,
                **look(method),
                label=mode,
            )
        ax.set(xlabel=f"test {loss} minus that\nof the closed form")
        ax.set(yticks=range(len(labels)), yticklabels=labels)
    axes[0].set_xscale("symlog", linthresh=0.1)
    axes[0].set(xticks=[-1, -0.1, 0, 0.1, 1], xticklabels=["−1", "−0.1", "0", "0.1", "1"])
    axes[1].set_xticks([-0.05, 0, 0.05])
    axes[0].invert_yaxis()
    handles, texts = axes[0].get_legend_handles_labels()
    changes.legend(handles, texts, loc="outside lower center", ncols=3)
    return outcomes, rows, clear, changes


def learning_curves(runs: pd.DataFrame) -> tuple[pd.DataFrame, Figure]:
    """Mean test errors by the number of training rows, and the differences from the closed form."""
    means, sizes = {}, np.array(modes.NUMBERS_OF_ROWS)
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.2), sharey=True)
    for ax, (model, of_model) in zip(axes, runs.groupby("model", sort=False)):
        ax.axhline(0, color="0.4", linewidth=1)
        errors = of_model.pivot(index=["size", "split"], columns="mode", values="error")
        means[model] = errors.groupby("size").mean()
        for mode, shift in (("published", 0.97), ("safe, target", 1.03)):
            difference = (errors[mode] - errors[modes.CLOSED]).unstack("split").to_numpy()
            spread = [corrected_standard_error(values, size, modes.TESTED) for values, size in zip(difference, sizes)]
            ax.errorbar(
                sizes * shift,
                difference.mean(axis=1),
                spread,
                linestyle="-",
                **look(LOOKS[mode]),
                capsize=2,
                label=mode,
            )
        ax.set(title=model, xlabel="training rows", xscale="log", xticks=sizes, xticklabels=sizes)
        ax.minorticks_off()
    axes[0].set_ylabel("test error minus that\nof the closed form")
    label_lines(axes[0])
    return pd.concat(means, axis=1), figure


def regions(sepals: Any, before: Any, after: Any, y: Any) -> Any:
    """Decision regions of QDA on two features of iris, before and after calibration."""
    corners = sepals.min(axis=0) - 0.4, sepals.max(axis=0) + 0.4
    plane = np.stack(np.meshgrid(*np.linspace(*corners, 120).T), axis=-1)
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.6), sharex=True, sharey=True)
    species = ("setosa", "versicolor", "virginica")
    for ax, classifier, title in zip(axes, (before, after), ("closed form", "calibrated")):
        plotting.DecisionRegionsDisplay.from_estimator(classifier, sepals, y, ax=ax)
        joint = classifier.predict_joint_log_proba(plane.reshape(-1, 2))
        joint = joint.reshape(120, 120, 3)
        for c, line in enumerate(("-", "--", "-.")):
            ax.contour(
                plane[..., 0],
                plane[..., 1],
                joint[:, :, c] - joint[:, :, c].max(),
                levels=[-2.0],
                colors=plotting.palette[c],
                linestyles=line,
            )
        ax.set(
            title=f"{title}: {np.mean(classifier.predict(sepals) != y):.1%} errors",
            xlabel="sepal length (cm)",
        )
        for name, place, colour in zip(species, ((4.15, 4.6), (5.0, 1.72), (7.3, 1.72)), plotting.palette):
            ax.text(*place, name, color=ink(colour))
    axes[0].set_ylabel("sepal width (cm)")
    return figure


def slips_of_the_toy(first: Any, ours: pd.DataFrame) -> pd.DataFrame:
    """Printed numbers of the toy of one variable beside those of its first model and of ``ours``, Table 1."""
    line = np.linspace(-40, 40, 80001)
    without_half = np.exp(-((line - first.parameters_[0]) ** 2)) / np.sqrt(2 * np.pi)
    belief = first.predict_proba([[1.0]])[0]
    label = np.array([0.0, 1.0])  # of the row (1, 2); its value is 1

    def listed(*values: float) -> str:
        return ", ".join(f"{value:.2f}" for value in values)

    def statistics_after(lr: float) -> str:
        return listed(*np.repeat(label + lr * (label - belief), 2))

    density = "integral of the density, printed without the factor 1/2 in its exponent"
    slips = {
        "Table 1, row (0, 1), before any update": ("0.95", listed(ours.loc["0,1", 0])),
        density: ("1", listed(np.sum(without_half) * 1e-3)),
        "Figure 1a, posterior at x = 3": ("0.65, 0.35", listed(*first.predict_proba([[3.0]])[0])),
        "Figure 1a, posterior at x = 1": ("", listed(*belief)),
        "Figure 1a, soft loss of the row (1, 2)": ("0.35", listed(1 - belief[1])),
        "statistics of the row (1, 2) with learning rate 1": ("-0.33, -0.33, 1.33, 1.33", statistics_after(1.0)),
        "the same with learning rate 1/2": ("", statistics_after(0.5)),
    }
    return pd.DataFrame(slips, index=["printed", "computed"]).T


def densities_and_regions(runs: dict[str, Any], X: Array, y: Array, X_new: Array, y_new: Array) -> Figure:
    """Regions of each classifier in the plane with contours of its class densities, and its losses on new rows."""
    corners = X.min(axis=0) - 0.4, X.max(axis=0) + 0.4
    plane = np.stack(np.meshgrid(*np.linspace(*corners, 160).T), axis=-1)
    figure, axes = plt.subplots(1, len(runs), figsize=(8.2, 3.1), sharey=True)
    for ax, (name, classifier) in zip(axes, runs.items()):
        plotting.DecisionRegionsDisplay.from_estimator(classifier, X, y, ax=ax)
        joint = classifier.predict_joint_log_proba(plane.reshape(-1, 2))
        for c, height in enumerate(joint.T.reshape(2, 160, 160)):
            levels, height = [-4.5, -2, -0.5], height - height.max()
            ax.contour(*np.moveaxis(plane, -1, 0), height, levels=levels, colors=plotting.palette[c], linestyles="-")
        P_new = classifier.predict_proba(X_new)
        wrong = np.mean(P_new.argmax(axis=1) != y_new)
        title = f"{name}\n{100 * wrong:.1f} % wrong, log-loss {log_loss(y_new, P_new):.3f}"
        ax.set(title=title, xlabel="first feature")
    axes[0].set_ylabel("second feature")
    return figure
