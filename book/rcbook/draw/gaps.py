"""Figures and tables of the chapter *Gaps*: losses by hidden values, rivals, reasons."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rcbook.experiments import results
from rcbook.experiments.comparisons import contest, holm
from rcbook.experiments.studies import gaps as study
from rcbook.experiments.studies import hidden_values_of_small_sets as small
from rcbook.experiments.studies import learners_on_the_clouds as on_clouds
from rcbook.experiments.studies import what_calibration_keeps as keeps
from rcbook.experiments.studies.honest_comparison import ROPE
from rcbook.figures import label_lines, look
from rcpkg import QDA, RiskCalibration
from rcpkg.base import Array
from rcpkg.plotting import markers, palette


def losses_with_hidden_values(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Of each set the mean log-losses of the stored divisions, by share and learner, and two standard errors."""
    of_share = runs.groupby(["set", "share", "learner"], sort=False).log_loss
    table = pd.concat({"mean": of_share.mean(), "two errors": 2 * of_share.sem()}, axis=1)
    return {name: table.loc[name].unstack().rename_axis(None) for name in small.SETS}


def clouds_with_gaps(runs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Log-losses of stored draws of the clouds with a coordinate hidden, and their means."""
    losses = runs.pivot(index=["learner", "draw"], columns="hiding", values="log_loss")[[*on_clouds.HIDDEN]]
    means = losses.groupby("learner").mean().loc[[*on_clouds.WITH_GAPS, on_clouds.TRUTH]]
    return losses, means.rename_axis(index=None, columns=None)


def answer(losses: Mapping[str, pd.DataFrame]) -> Figure:
    """Log-loss against the share of hidden values."""
    LOOKS = {
        "QDA": look("closed form"),
        "QDA, calibrated": look("target"),
        "logistic, mean filled in": {**look("logistic regression"), "ls": ":"},
        "logistic, regression filled in": look("logistic regression"),
        "boosting": look("boosting"),
        "boosting, masked copies": {**look("boosting"), "ls": ":", "marker": "o"},
    }
    answer, axes = plt.subplots(1, 2, figsize=(8.4, 3.8))
    for ax, (name, table) in zip(axes, losses.items()):
        for rival, style in LOOKS.items():
            mean, two_errors = table["mean"][rival], table["two errors"][rival]
            ax.plot(100 * table.index, mean, label=rival, **style)
            ax.fill_between(100 * table.index, mean - two_errors, mean + two_errors, color=style["color"], alpha=0.12)
        ax.set(title=name, xlabel="values hidden at prediction, %", ylim=(0, None))
    axes[0].set_ylabel("log-loss on test rows")
    axes[0].legend()
    return answer


def coherence(flowers: Array, species: Array) -> tuple[Array, Figure, dict[str, float]]:
    """Posteriors without a feature, averaged over it, and with a value filled in."""
    pair = flowers[:, [0, 2]]
    spread = np.linspace(4.3, 7.9, 61)
    joint_model = RiskCalibration(QDA()).fit(pair, species)
    logistic = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=1000)).fit(
        pair, species
    )

    def averaged(classifier, x, nodes=4_001):
        """Mean of p(y | x, z) over z given x, by the joint model's p(z | x)."""
        z = np.linspace(-2.0, 12.0, nodes)
        rows = np.column_stack([np.full(nodes, x), z])
        weight = np.exp(joint_model.score_samples(rows))
        return weight @ classifier.predict_proba(rows) / weight.sum()

    hidden = np.column_stack([spread, np.full(len(spread), np.nan)])
    coherence, axes = plt.subplots(1, 2, figsize=(7.6, 3.4), sharey=True)
    largest = {}
    for ax, (title, classifier) in zip(
        axes,
        {
            "calibrated QDA": joint_model,
            "logistic, mean filled in": logistic,
        }.items(),
    ):
        told = classifier.predict_proba(hidden)
        expected = np.array([averaged(classifier, x) for x in spread])
        largest[title] = abs(told - expected).max()
        for c, name in enumerate(("setosa", "versicolor", "virginica")):
            ax.plot(spread, told[:, c], color=palette[c], label=name)
            ax.plot(spread, expected[:, c], "--", color=palette[c])
        ax.set(title=title, xlabel="sepal length (cm)")
    axes[0].set_ylabel("posterior, petal length hidden")
    places = {"setosa": (5.2, 0.85, "left"), "versicolor": (5.85, 0.7, "center"), "virginica": (6.7, 0.85, "right")}
    label_lines(axes[0], places)
    return spread, coherence, largest


def study_of_gaps(of_arms: Mapping[str, pd.DataFrame], ours: Mapping[str, str]) -> tuple[list[str], Figure]:
    """Median log-loss of each rival over ours, by kind and share of gaps."""
    STYLES = {
        "boosting": look("boosting"),
        "boosting, multiple": {**look("boosting"), "ls": "--", "marker": "D", "mfc": "w"},
        "boosting, masked copies": {**look("boosting"), "ls": ":", "marker": "o"},
        "logistic regression, multiple": look("logistic regression"),
        "forest": look("random forest"),
        "nearest neighbours": look("nearest neighbours"),
        "closed form": look("closed form"),
    }
    KINDS = list(study.KINDS)
    places = [*range(6), 6.3, 7.6]
    studied, axes = plt.subplots(1, 2, figsize=(8.6, 4.0), layout="constrained")
    for ax, (arm, table) in zip(axes, of_arms.items()):
        closed = study.CLOSED_FORM[arm]
        ahead = study.advantage(table, ours[arm], [*list(STYLES)[:-1], closed])
        ax.axhline(0, color="0.4", linewidth=1)
        for rival in ahead:
            name = "closed form" if rival == closed else rival
            style = STYLES[name]
            ax.plot(range(6), ahead[rival].iloc[:6], label=name, **style)
            ax.plot(places[6:], ahead[rival].iloc[6:], **{**style, "ls": ""})
        shares = [kind.split("%")[0] for kind in KINDS[:6]]
        ax.set_xticks(places, [*shares, "groups", "value"])
        ax.set_yscale("symlog", linthresh=0.1)
        ax.set(title=f"{arm}, {ours[arm]}", xlabel="values missing, %")
    axes[0].set_ylabel("log-loss of a rival less ours")
    handles, labels = axes[0].get_legend_handles_labels()
    studied.legend(handles, labels, loc="outside lower center", ncols=3)
    return KINDS, studied


def half_missing_in_words(numbers: pd.DataFrame, ours: str) -> str:
    """On how many sets of numbers ours has less log-loss than three rivals, half of the values missing."""
    rivals = ["logistic regression, multiple", "boosting", study.SHOWN_BOOSTING]
    counts = study.wins(numbers, ours, rivals)
    n_sets, (less, than_boosting, than_copies) = int(counts.sets.max()), counts.loc[rivals, "50% at random"]
    return (
        f"With half of the values missing at prediction, {ours.split(',')[0]} calibrated with gaps in view has a "
        f"lower log-loss than logistic regression behind multiple imputation on {less} of {n_sets} data sets of "
        f"numbers, and than ordinary boosting on {than_boosting}. It saw copies of its rows with values hidden, as "
        f"none of these rivals did. Boosting trained on such copies has the lower log-loss on {n_sets - than_copies}."
    )


def wins(
    ours: Mapping[str, str], of_arms: Mapping[str, pd.DataFrame], KINDS: Sequence[str]
) -> tuple[dict[str, pd.DataFrame], dict[str, list], dict[str, pd.DataFrame], dict[str, str]]:
    """On how many data sets ours has the lower log-loss."""
    counts = {
        arm: study.wins(
            table,
            ours[arm],
            [
                rival
                for rival in (
                    *study.COMPLETE,
                    study.SHOWN_BOOSTING,
                    study.SHOWN_LOGISTIC,
                    *study.JOINT[arm],
                )
                if rival != ours[arm]
            ],
        )
        for arm, table in of_arms.items()
    }
    MAIN = [
        "boosting",
        "boosting, multiple",
        "logistic regression, chained",
        "logistic regression, multiple",
        "forest",
        "nearest neighbours",
        study.SHOWN_BOOSTING,
    ]
    beside = {arm: [*MAIN, study.CLOSED_FORM[arm], study.PLAINLY_CALIBRATED[arm]] for arm in counts}
    beaten = {arm: counts[arm].loc[[*beside[arm], study.EVERY]] for arm in counts}
    SHORT = {
        kind: kind.replace(" at random", "").replace("35% in ", "").replace("35% by ", "") for kind in KINDS
    }
    return counts, beside, beaten, SHORT


def tests_of_rivals(
    ours: Mapping[str, str],
    beside: Mapping[str, list[str]],
    KINDS: Sequence[str],
    of_arms: Mapping[str, pd.DataFrame],
) -> pd.DataFrame:
    """What Wilcoxon's test says of each rival, by kind and share of gaps."""

    def tested(arm, table):
        """Tests of ours against the main rivals, for each kind of gaps."""
        pairs = [(ours[arm], rival) for rival in beside[arm]]
        return pd.concat(
            {
                kind: contest(table.xs(kind, level="kind"), pairs, ROPE["log_loss"]).set_index("against")
                for kind in KINDS
            }
        )

    told = pd.concat({arm: tested(arm, table) for arm, table in of_arms.items()})
    told["p_holm"] = holm(told.p)
    told["says"] = np.select([told.p_holm >= study.LEVEL, told["median"] < 0], ["", "+"], "−")
    return told


def medians_at_a_third(of_arms: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Medians over the data sets with 35 per cent missing."""
    METRICS = {
        "log_loss": "log-loss",
        "error_percent": "error, %",
        "brier": "Brier score",
        "calibration_error": "calibration error",
    }

    def at_a_third(arm):
        """Medians over the sets with 35 per cent missing at random."""
        columns = {
            title: study.losses_of(arm, metric).xs("35% at random", level="kind").median()
            for metric, title in METRICS.items()
        }
        table = pd.DataFrame(columns).sort_values("log-loss")
        return table.round(3).round({"error, %": 1})

    return {arm: at_a_third(arm) for arm in of_arms}


def costs_of_methods() -> Callable[..., Any]:
    """Medians of the processor time of a fit and of a prediction."""
    needed = results("study", "memory-with-gaps").pivot_table(
        index="learner", columns="arm", values="megabytes"
    )
    learner_of = {
        study.name_of_way(name, way): name for name, learner in study.LEARNERS.items() for way in learner.ways
    }

    def costs(arm, names):
        """Median milliseconds over the sets, and MB."""
        table = pd.DataFrame(
            {
                "fit, ms": study.seconds(arm, "fit_seconds").median() * 1000,
                "prediction, ms": study.seconds(arm, "predict_seconds").median() * 1000,
            }
        ).loc[names]
        table = table.round({"fit, ms": 0, "prediction, ms": 1}).astype({"fit, ms": int})
        megabytes = needed[arm].round().to_dict()
        table["MB"] = [
            f"{megabytes[learner_of[name]]:.0f}" if learner_of[name] in megabytes else ""
            for name in table.index
        ]
        return table

    return costs


def targets_compared(
    of_arms: Mapping[str, pd.DataFrame], KINDS: Sequence[str], SHORT: Mapping[str, str]
) -> pd.DataFrame:
    """Log-loss of calibrated TAN by target and share of gaps."""
    trees = of_arms["categories"]
    names = {
        "generative": "TAN, calibrated",
        "pooled": "TAN, calibrated, pooled target",
        "closed form": "TAN",
        "naive Bayes, pooled": "NB, calibrated",
    }
    medians = trees[list(names.values())].groupby(level="kind").median()
    medians = medians.set_axis(list(names), axis=1).reindex(KINDS).T
    excess = (trees[names["pooled"]] - trees[names["generative"]]).unstack("kind")[list(KINDS)]
    excesses = {"greatest": excess.max(), "mean": excess.mean()}
    excesses["mean of the other sets"] = (excess.sum() - excess.max()) / (len(excess) - 1)
    return (
        pd.concat(
            {
                "median log-loss": medians.map("{:.3f}".format),
                "pooled less generative": pd.DataFrame(excesses).T.map("{:.3f}".format),
                "sets with less than generative": pd.DataFrame(
                    {
                        name: (trees[of] < trees[names["generative"]])
                        .groupby(level="kind")
                        .sum()
                        .reindex(KINDS)
                        for name, of in names.items()
                        if name != "generative"
                    }
                ).T.astype(object),
            }
        )
        .rename(columns=SHORT)
        .rename_axis(columns=None)
    )


def rivals_with_gaps_in_training() -> tuple[dict[str, str], pd.DataFrame]:
    """Where training has gaps too: on how many sets the calibrated model is ahead."""
    BAYES = {"numbers": "GaussianNB, calibrated", "categories": "NB, calibrated"}
    FULL = {"numbers": "QDA, calibrated", "categories": "TAN, calibrated"}

    def with_gaps_in_training(arm):
        """Wins of the two calibrated models of an arm where training has gaps too."""
        losses = study.losses_of(arm, study=study.TRAINING_NAME)
        rivals = [name for name in losses if name not in (BAYES[arm], FULL[arm])]
        found = {
            f"{title}, {kind.split()[0]}": study.wins(losses, model, rivals)[kind]
            for title, model in (("naive Bayes", BAYES[arm]), ("QDA or TAN", FULL[arm]))
            for kind in ("20% at random", "50% at random")
        }
        n_sets = study.wins(losses, BAYES[arm], rivals)["sets"]
        return pd.DataFrame({"sets": n_sets, **found}).drop(index=study.EVERY)

    both = pd.concat({arm: with_gaps_in_training(arm) for arm in BAYES})
    return BAYES, both


def what_calibration_keeps() -> tuple[list[str], dict[str, dict]]:
    """Means of what calibration keeps or improves, by target."""
    USES = {
        "sufficient sets: posterior promised": ("reasons", "posterior", None),
        "sufficient sets: share that is right": ("reasons", "right", None),
        "novelty: AUC of −log p(x)": ("novelty", "auc", "isolation forest"),
        "novelty: AUC of 1 − greatest posterior": (
            "novelty",
            "auc_of_doubt",
            None,
        ),
        "class weights changed: log-loss": (
            "weights",
            "as_they_are",
            "logistic",
        ),
        "corrected by the new weights": ("weights", "known", "logistic"),
        "corrected by weights from EM": ("weights", "estimated", "logistic"),
        "boosting trained on drawn rows: log-loss": (
            "drawn",
            "log_loss",
            "training rows",
        ),
        "drawn or real: AUC of boosting": ("drawn", "auc", None),
    }
    TARGETS = ["pooled", "generative"]
    LESS_IS_BETTER = ("log-loss", "weights", "boosting")
    summary = {}
    for use, (topic, metric, rival) in USES.items():
        table = keeps.means(topic, metric)
        gains = table[TARGETS].sub(table["closed form"], axis=0)
        if any(word in use for word in LESS_IS_BETTER):
            gains = -gains
        summary[use] = {
            **table[["closed form", *TARGETS]].mean().map("{:.3f}".format),
            "rival": f"{table[rival].mean():.3f}" if rival else "",
            **{
                f"{target} better": f"{(gains[target] > 0).sum()} of {len(table)}"
                for target in TARGETS
                if metric != "posterior"
            },
        }
    return TARGETS, summary


def kept_by_sets(TARGETS: Sequence[str]) -> Figure:
    """What calibration keeps, closed form against calibrated, set by set."""
    keeping, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.9))
    reliable = keeps.means("reasons", "right")
    auc = keeps.means("novelty", "auc")
    for ax, table in ((left, reliable), (right, auc)):
        for target, fill in zip(TARGETS, (None, "white")):
            method = {"pooled": "target", "generative": "generative target"}[target]
            for family, marker in zip(keeps.FAMILIES, markers):
                part = table.xs(family, level="family")
                ax.plot(
                    part["closed form"],
                    part[target],
                    marker,
                    color=look(method)["color"],
                    mfc=fill,
                    label=f"{target}, {family}",
                )
        low = table.min(axis=None) - 0.03
        ax.plot([low, 1], [low, 1], color="0.6", linewidth=1, zorder=0)
        ax.set(xlabel="closed form", ylabel="calibrated")
    left.axhline(keeps.LEVEL, color="0.6", linestyle="--", linewidth=1, zorder=0)
    left.set_title("sufficient sets that are right")
    right.set_title("AUC for a class left out")
    left.legend(loc="lower right")
    return keeping
