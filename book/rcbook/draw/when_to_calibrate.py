"""Figures and tables of the chapter *When to calibrate*: scores, ranks and contests of the honest comparison."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import sem, spearmanr
from scipy.stats import t as student

from rcbook.experiments import results
from rcbook.experiments.comparisons import beliefs, contest
from rcbook.experiments.studies import choice_of_target, recommended_calls
from rcbook.experiments.studies import gain_of_calibration as study
from rcbook.experiments.studies import honest_comparison as honest
from rcbook.experiments.studies import post_hoc_calibration as post_hoc
from rcbook.experiments.studies import weights_on_few_rows as few
from rcbook.figures import OUTCOMES, label_lines, look, rank_diagram, tally
from rcpkg.plotting import palette

MODELS = {"NB": "naive Bayes", "QDA": "QDA"}
SCORES = {"log_loss": "log-loss", "error_percent": "error"}
TITLES = {
    "error_percent": "error",
    "log_loss": "log-loss",
    "brier": "Brier score",
    "calibration_error": "calibration error",
}
PANELS = {metric: TITLES[metric] for metric in ("error_percent", "log_loss", "brier")}
RIVALS = {
    "closed form (QDA MAP)": "QDA, closed form",
    "RC as published (NB MAP)": "NB, RC as published",
    "RC as published (QDA MAP)": "QDA, RC as published",
    "RC safe, pooled target (NB MAP)": "NB, RC to the pooled target",
    "RC safe, pooled target (QDA ML)": "QDA, RC to the pooled target",
    "logistic regression, tuned (LR)": "logistic regression",
    "SVM (RBF), tuned": "SVM",
    "random forest": "random forest",
    "gradient boosting": "gradient boosting",
}
DIGITS = dict(zip(honest.METRICS, (1, 3, 3, 3)))

Scores = Mapping[str, pd.DataFrame]  # of each metric the means: a row a data set, a column a learner
Pairs = Sequence[tuple[str, str]]


def short(name: str) -> str:
    """A learner without its family."""
    return name.split(" (")[0]


# Contests ------------------------------------------------------------------------------------------


def bars_of_pairs(panels: Callable[[str, str], pd.DataFrame], height: float, sizes: bool = False) -> Figure:
    """A row of bars for each model, a column for log-loss and error: ``panels`` of family and metric gives counts.

    With ``sizes`` the title says over how many sets they go.
    """
    figure, axes = plt.subplots(2, 2, figsize=(7.6, height), sharey="row", layout="constrained")
    for row, (family, model) in zip(axes, MODELS.items()):
        for ax, (metric, score) in zip(row, SCORES.items()):
            counts = panels(family, metric)
            tally(ax, counts)
            ax.set_title(f"{model}, {score}" + (f", {counts.sets.max()} sets" if sizes else ""), loc="left")
    handles, texts = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside lower center", ncols=3)
    return figure


def chosen_against_rivals(divisions: pd.DataFrame, family: str, metric: str) -> pd.DataFrame:
    """Sets on which `RiskCalibrationCV` is better, level and worse, a row for each rival."""
    table = study.means(divisions, metric)
    found = table.loc[family].copy()
    found[study.FOREST] = table.loc["NB", study.FOREST].reindex(found.index)
    rivals = (study.CLOSED, study.PUBLISHED, study.FIXED, study.LOGISTIC, study.FOREST)
    tallied = contest(found, [(study.CHOSEN, rival) for rival in rivals], honest.ROPE[metric]).set_index(
        "against"
    )
    return tallied.assign(starred=tallied.p_holm < 0.05)


def questions(family: str) -> list[tuple[str, str]]:
    """Pairs (learner, opponent) of one family."""
    closed, published, early, *rest = honest.learners(family)
    *penalised, optimum, logistic = rest[2:]  # without gradient descent
    ours = [early, *penalised]
    pairs = [(a, published) for a in ours]
    pairs += [(a, closed) for a in (published, *ours)]
    return pairs + [(a, logistic) for a in (published, *ours, optimum)]


def main_questions(family: str) -> dict[str, tuple[str, str]]:
    """The pairs of a family that matter most, by what they ask."""
    closed, published, early, *_ = honest.learners(family)
    pooled = next(name for name in honest.learners(family) if "pooled" in name)
    return {
        "published RC against closed form": (published, closed),
        "pooled target against closed form": (pooled, closed),
        "early stopping against published RC": (early, published),
        "pooled target against published RC": (pooled, published),
        "pooled target against logistic": (pooled, f"logistic regression, tuned ({family})"),
    }


def named(pairs: Pairs, family: str) -> pd.MultiIndex:
    """The pairs as row labels, in short names."""
    rows = [
        tuple(short(name).removeprefix("RC safe, ").removesuffix(", tuned") for name in pair)
        for pair in pairs
    ]
    return pd.MultiIndex.from_tuples(rows, names=[family, "against"])


def contests(scores: Scores, family: str, sets: Sequence[str]) -> pd.DataFrame:
    """One row for each pair: better/level/worse by each score, * where Holm's p is below 0.05."""
    columns = {}
    for metric, title in TITLES.items():
        table = contest(scores[metric].loc[sets], questions(family), honest.ROPE[metric])
        columns[title.removesuffix(" score")] = [
            f"{row.better}/{row.level}/{row.worse}{'*' if row.p_holm < 0.05 else ''}"
            for row in table.itertuples()
        ]
    return pd.DataFrame(columns, index=named(questions(family), family))


def main_contests(scores: Scores, sets: Sequence[str], family: str, metric: str) -> pd.DataFrame:
    """Counts of the main pairs; stars are those of all pairs of the family."""
    found = contest(scores[metric].loc[sets], questions(family), honest.ROPE[metric])
    counts = found.set_index(["learner", "against"]).loc[list(main_questions(family).values())]
    counts = counts.set_axis(main_questions(family))
    return counts.assign(starred=counts.p_holm < 0.05)


def contests_elsewhere(
    scores: Scores, groups: Mapping[str, Sequence[str]], family: str, metric: str
) -> pd.DataFrame:
    """Counts of the pairs of published RC and of the pooled target on each group of sets."""
    asked = {
        question: pair
        for question, pair in main_questions(family).items()
        if question.startswith(("published", "pooled"))
    }
    rows = {}
    for group, sets in groups.items():
        counts = contest(scores[metric].loc[sets], list(asked.values()), honest.ROPE[metric])
        for question, (_, row) in zip(asked, counts.iterrows()):
            rows[f"{question}, {group}"] = row[list(OUTCOMES)]
    return pd.DataFrame(rows).T.astype(int).sort_index(kind="stable")


def belief_table(scores: Scores, family: str, sets: Sequence[str]) -> pd.DataFrame:
    """Posterior probabilities that the first of each main pair is better, level, worse, score by score."""
    asked = main_questions(family)
    pairs = [pair for question, pair in asked.items() if question != "pooled target against closed form"]
    tables = {}
    for metric, title in PANELS.items():
        rows = []
        for pair in pairs:
            first, second = scores[metric].loc[sets, list(pair)].dropna().to_numpy().T
            rows.append(beliefs(first - second, honest.ROPE[metric]))
        tables[title] = pd.DataFrame(rows, columns=["better", "level", "worse"]).set_axis(
            named(pairs, "learner")
        )
    return pd.concat(tables, names=[family]).round(2)


# Means and ranks -----------------------------------------------------------------------------------


def overview(scores: Scores, sets: Iterable[str], metric: str) -> pd.DataFrame:
    """Mean of each learner over sets that have all learners: a row a learner, a column a family."""
    table = {
        (short(name), family): scores[metric].loc[sets, name].mean()
        for family in honest.FAMILIES
        for name in honest.learners(family)
    }
    rows = list(dict.fromkeys(name for name, _ in table))
    wide = pd.Series(table).unstack().reindex(rows, columns=honest.FAMILIES)
    return wide.map(lambda value: "–" if np.isnan(value) else f"{value:.{DIGITS[metric]}f}")


def means(scores: Scores, sets: Iterable[str]) -> Figure:
    """Mean log-loss and error of all learners, those of a family in one colour, over sets that have all learners."""
    log_loss = scores["log_loss"]
    rivals = [name for name in log_loss if "(" not in name or "RBF" in name]
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 4.2), sharey=True, layout="constrained")
    places = [*overview(scores, sets, "log_loss").index, *rivals]
    for ax, metric in zip(axes, SCORES):
        for family, colour, marker in zip(honest.FAMILIES, palette, "osD"):
            means = {
                places.index(short(n)): scores[metric].loc[sets, n].mean() for n in honest.learners(family)
            }
            label = MODELS.get(family, "shared variances")
            ax.plot(means.values(), means.keys(), marker, color=colour, alpha=0.85, label=label)
        rows = [places.index(name) for name in rivals]
        ax.plot(scores[metric].loc[sets, rivals].mean(), rows, "k*", markersize=7, label="no family")
        ax.set(xlabel=f"mean {TITLES[metric]}" + (", %" if "percent" in metric else ""))
    axes[0].set(xscale="log", xticks=[0.5, 1, 2], yticks=range(len(places)))
    axes[0].set(xticklabels=["0.5", "1", "2"], yticklabels=places)
    axes[0].minorticks_off()
    axes[0].invert_yaxis()
    handles, texts = axes[0].get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside lower center", ncols=4)
    return figure


def rank_diagrams(panels: Mapping[str, pd.DataFrame]) -> Figure:
    """A diagram of ranks for each table of scores, over the sets that have all its learners."""
    figure, axes = plt.subplots(len(panels), 1, figsize=(7.6, 4.6), layout="constrained")
    for ax, (title, table) in zip(axes, panels.items()):
        table = table.dropna()
        rank_diagram(ax, table, "C1")
        ax.set_title(f"{title}, {len(table)} data sets", loc="left")
    return figure


# Weights, gains, reliability -----------------------------------------------------------------------


def weights_of_the_target(by_weight: pd.DataFrame) -> Figure:
    """How far each weight is above the best, and on how many sets it is below the closed form."""
    figure, (ax, share) = plt.subplots(1, 2, figsize=(7.6, 3.2), layout="constrained")
    for family, colour, marker in zip(MODELS, palette, "os"):
        ax.plot(by_weight.index, by_weight[family], marker + "-", color=colour, label=MODELS[family])
    ax.set(xscale="log", xlabel="weight of the target", ylabel="log-loss above the\nbest of seven weights")
    ax.set_ylim(bottom=0)
    label_lines(ax, {MODELS["NB"]: (5, 0.013, "center"), MODELS["QDA"]: (0.17, 0.22, "left")})
    percent = 100 * by_weight["beats the closed form"] / by_weight["of"]
    share.plot(by_weight.index, percent, "D-", color=look("target")["color"])
    share.set(xscale="log", ylim=(50, 100), xlabel="weight of the target")
    share.set_ylabel("% of sets with a lower\nlog-loss than the closed form")
    return figure


def gains(outcome: pd.DataFrame) -> Figure:
    """The gain of calibration against the statistic of the test over what is expected of it."""
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.6), sharey=True)
    for ax, (family, of_family) in zip(axes, outcome.groupby("family")):
        for (group, part), colour, marker in zip(of_family.groupby("group"), palette, "os"):
            ax.plot(part.ratio, part.gain, marker, color=colour, label=group, alpha=0.6)
        ax.axhline(0, color="0.4", lw=0.8)
        ax.axvline(2, color="0.4", lw=0.8, ls=":")
        ax.set_xscale("log")
        ax.set_yscale("symlog", linthresh=0.01)
        ax.set(title=MODELS[family], xlabel="T, over what is expected")
    axes[0].set_ylabel("gain in log-loss")
    axes[0].legend()
    return figure


def choices_on_few_rows() -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
    """Of each case the mean log-loss by weight and estimate, and that of the chosen weights as reported and as kept."""
    runs = results("study", few.FEW_STUDY)
    curves, rows = {}, {}
    for case, of_case in runs.groupby("case", sort=False):
        of_weights = of_case.pivot_table("log_loss", "weight", "estimate")
        curves[case] = of_weights[[*few.ESTIMATES, few.OTHERS]]
        chosen = of_case.dropna(subset=["reported"]).set_index(["split", "estimate"])
        chosen = chosen[["reported", "on other rows"]].unstack("estimate")
        by_rows_left_out, by_folds = (chosen["on other rows", name] for name in few.ESTIMATES)
        rows[case] = {("", "parameters"): few.CASES[case][2]}
        for column in ("reported", "on other rows"):
            rows[case] |= {(column, name): chosen[column, name].mean().round(3) for name in few.ESTIMATES}
        rows[case]["splits with folds", "better"] = (by_rows_left_out - by_folds > 0.01).sum()
        rows[case]["splits with folds", "worse"] = (by_folds - by_rows_left_out > 0.01).sum()
    return curves, pd.DataFrame.from_dict(rows, orient="index")


def weights_on_the_clouds() -> pd.DataFrame:
    """Mean log-loss on the clouds by the number of rows, and the draws on which it is below that of the closed form."""
    losses = results("study", few.CLOUDS_STUDY).pivot(index=["rows", "draw"], columns="learner", values="log_loss")
    losses = losses[[*few.LEARNERS]]
    lower = losses.lt(losses["closed form"], axis=0).groupby("rows").sum()
    return pd.concat(
        {
            "mean log-loss": losses.groupby("rows").mean().T.map("{:.3f}".format),
            "draws on which it is lower": lower.T.iloc[1:].astype(object),
        },
        names=[None, None],
    )


def curves_of_weights(curves: Mapping[str, Mapping[str, pd.Series]]) -> Figure:
    """Log-loss against the weight of the target, a panel for each case."""
    figure, axes = plt.subplots(1, len(curves), figsize=(7.6, 2.8), layout="constrained")
    for ax, (case, of_case) in zip(axes, curves.items()):
        for (name, curve), style in zip(of_case.items(), ("o-", "s--", "^:")):
            ax.semilogx(curve.index, curve, style, markersize=4, label=name)
        ax.set(title=case, xlabel="weight of the target", ylim=(0, None))
        ax.minorticks_off()
    axes[0].set_ylabel("log-loss")
    height = {"leave-one-out": 0.1, "five folds": 0.232, "other rows": 0.362}
    label_lines(axes[1], {name: (0.08, at, "left") for name, at in height.items()})
    return figure


def reliability() -> Figure:
    """How often predictions of each probability are right, of the closed form, rescaled and calibrated."""
    shown = {
        study.CLOSED: "closed form",
        post_hoc.RESCALED[2]: "rescaled",
        study.CHOSEN: "chosen weight",
        study.LOGISTIC: "logistic regression",
    }
    curves = post_hoc.reliability_curves(tuple(shown))
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.6), sharey=True)
    for ax, family in zip(axes, MODELS):
        ax.plot([0, 1], [0, 1], color="0.6", lw=0.8)
        for name, method in shown.items():
            curve = curves.loc[family, name]
            curve = curve[curve.share > 0.005]
            ax.plot(curve.confidence, curve.right, "-", **look(method), label=name)
        ax.set(title=MODELS[family], xlabel="probability of the predicted class")
    axes[0].set_ylabel("share of right predictions")
    axes[0].legend()
    return figure


METHOD_ROWS = [study.CLOSED, *post_hoc.RESCALED, study.FIXED, post_hoc.FOLLOWED, study.CHOSEN, study.LOGISTIC]


MEAN_SCORES = {"error_percent": 1, "log_loss": 3, "brier": 3}


METHODS = [study.CLOSED, study.PUBLISHED, study.FIXED, study.CHOSEN, study.LOGISTIC]


KINDS = {"as printed": "printed", "corrected": "corrected"}


def contests_with_descent(
    scores: Mapping[str, pd.DataFrame], development: Sequence[str]
) -> tuple[dict[str, pd.DataFrame], dict[str, pd.Series]]:
    """Published RC against gradient descent, printed and corrected: better, level and worse."""
    pairs = {
        (f"{f} {start}", gradient): (f"RC as published ({f} {start})", f"GD {kind} ({f} {start})")
        for f in honest.FAMILIES
        for start in ("ML", "MAP")
        for kind, gradient in KINDS.items()
    }
    descents = {
        PANELS[metric]: contest(
            scores[metric].loc[development], list(pairs.values()), honest.ROPE[metric]
        ).set_axis(pd.MultiIndex.from_tuples(pairs, names=["model", "gradient of GD"]))
        for metric in ("error_percent", "log_loss")
    }
    counts = {
        title: table[["better", "level", "worse"]].astype(str).agg("/".join, axis=1)
        for title, table in descents.items()
    }
    return descents, counts


def measures(part: pd.DataFrame) -> dict[str, Any]:
    """What each hypothesis says of a part of the divisions: shown, and whether it holds."""
    p, gain = part[study.FORMER, "p_value"], study.gains(part)
    known, accepted = p.notna(), p > 0.05
    rank = spearmanr(p[known], gain[known]).statistic
    of_sets = pd.DataFrame({"p": p, "gain": gain})[known].groupby("set").mean()
    by_sets = spearmanr(of_sets.p, of_sets.gain)
    medians = gain[accepted].median(), gain[known & ~accepted].median()
    unharmed = gain[accepted] > -0.01
    losses = study.means(part, "log_loss")
    wins = losses[study.CHOSEN] < losses[study.PUBLISHED]
    wins = wins.groupby("family").agg(["sum", "size"])
    gap = losses[study.CHOSEN] - losses[study.LOGISTIC]
    gap = gap.groupby("family").agg(["mean", sem, "size"])
    half = student.ppf(0.975, gap["size"] - 1) * gap["sem"]
    seconds = part.xs("seconds", axis=1, level="metric")
    ratio = seconds[study.LOGISTIC] / seconds[study.CHOSEN]
    return {
        "1. rank correlation of p and gain": (f"{rank:.2f}", rank < 0),
        "1. the same, of means over each set": (f"{by_sets.statistic:.2f}", by_sets.statistic < 0),
        "1. p-value of this": (f"{by_sets.pvalue:.2f}",),
        **{
            f"1. median gain, p {side} 0.05": (f"{m:.3f}", medians[0] < medians[1])
            for side, m in zip(">≤", medians)
        },
        "2. splits with gain above −0.01 where p > 0.05": (
            f"{unharmed.sum()} of {len(unharmed)}",
            unharmed.mean() >= 0.9,
        ),
        **{
            f"3. {f}: sets better than published RC": (f"{w['sum']} of {w['size']}", w["sum"] > w["size"] / 2)
            for f, w in wins.iterrows()
        },
        **{
            f"4. {f}: log-loss above logistic regression": (
                f"{g['mean']:z.3f} ± {half[f]:.3f}",
                abs(g["mean"]) <= 0.01,
                abs(g["mean"]) + half[f] > 0.01,
            )
            for f, g in gap.iterrows()
        },
        "5. share of splits in less time than logistic regression": (
            f"{(ratio > 1).mean():.2f}",
            (ratio > 1).mean() > 0.5,
        ),
    }


def hypotheses(wide: pd.DataFrame) -> pd.DataFrame:
    """What the study of gains says of each hypothesis."""
    groups = {name: measures(part) for name, part in wide.groupby("group")}
    verdicts = pd.DataFrame({name: {h: v[0] for h, v in found.items()} for name, found in groups.items()})
    verdicts["holds"] = [
        ""
        if not any(found[h][1:] for found in groups.values())
        else "no"
        if not all(found[h][1] for found in groups.values())
        else "open"
        if any(any(found[h][2:]) for found in groups.values())
        else "yes"
        for h in verdicts.index
    ]
    return verdicts


def of_gains(part: pd.DataFrame) -> pd.Series:
    """How many gained and lost more than 0.01, and the mean."""
    gain = part.gain
    return pd.Series(
        {
            "splits": len(gain),
            "gained": (gain > 0.01).sum(),
            "lost": (gain < -0.01).sum(),
            "mean gain": gain.mean().round(3),
        }
    )


def gained_and_lost(outcome: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """How many sets gained and lost by each choice of the weight."""
    tested = outcome.dropna(subset="p")
    kinds = {
        "p ≤ 0.05": tested[tested.p <= 0.05],
        "p > 0.05": tested[tested.p > 0.05],
        "T > 2 E": tested[tested.ratio > 2],
        "T ≤ 2 E": tested[tested.ratio <= 2],
    }
    by_kind = pd.concat(
        {name: part.groupby("group")[["gain"]].apply(of_gains) for name, part in kinds.items()}
    )
    return tested, by_kind


def errors_of_choices(wide: pd.DataFrame) -> pd.DataFrame:
    """Mean scores of each learner over the sets."""
    means = {
        TITLES[metric]: study.means(wide, metric)[METHODS].groupby("family").mean().round(digits)
        for metric, digits in MEAN_SCORES.items()
    }
    seconds = wide.xs("seconds", axis=1, level="metric")[METHODS]
    milliseconds = 1000 * seconds.groupby("family").median()
    means["median milliseconds"] = milliseconds.round().astype(int)
    return pd.concat(
        {
            family: pd.DataFrame({title: table.loc[family] for title, table in means.items()})
            for family in ("NB", "QDA")
        },
        names=["model", "method"],
    )


def large_sets() -> dict[str, pd.DataFrame]:
    """Scores on sets of many rows."""
    large = study.many_rows()
    names = {
        study.CLOSED: "closed form",
        study.FIXED: "weight 3",
        study.CHOSEN: "chosen",
        "logistic regression": "logistic",
    }
    shown = {}
    for metric, digits in {"log_loss": ".3f", "seconds": ".2g"}.items():
        table = large[metric].unstack()[list(names)].rename(columns=names)
        table = table.loc[list(study.MANY_ROWS)].rename_axis(columns=None)
        shown[metric] = table.map(lambda x, digits=digits: f"{x:{'.0f' if x > 100 else digits}}").replace(
            "nan", "–"
        )
    rows = large["rows"].groupby("set").first().astype(int)
    shown["seconds"].insert(0, "rows", rows.reindex(table.index))
    shown["log_loss"].insert(0, "model", [study.MANY_ROWS[name][1] for name in table.index])
    return shown


def losses_by_target() -> pd.DataFrame:
    """Mean log-losses of the study of the target, a row a group of sets."""
    return choice_of_target.means(results("study", "choice-of-target")).round(3)


def silent_fits() -> pd.DataFrame:
    """Fits that are worse than the class frequencies or the closed form, and say so or not, of both studies."""
    calls = results("study", recommended_calls.STUDY_NAME)
    rivals = {"class frequencies": "frequencies", "closed form": "closed"}
    by_rival = {name: recommended_calls.silent(calls, of) for name, of in rivals.items()}
    found = {"tables by folds": pd.concat(by_rival)}
    found["sets, 75 and 300 rows"] = choice_of_target.silent(results("study", "choice-of-target"))
    columns = ["fits", "say so", "worse", "silent", "silent, by 2 errors"]
    table = pd.concat(found)[columns].astype("Int64").sort_index()
    return table[table.fits > 0].astype(object).fillna("–")


def beyond_the_margin() -> pd.DataFrame:
    """A row a rival: silent fits of folds, those above it by two standard errors more than `recommended_calls.WORSE`,
    as many as chance gives if each was above it by just that; and the least p of the one-sided paired tests of that,
    times their number (Bonferroni)."""
    table, rows = results("study", recommended_calls.STUDY_NAME), {}
    for rival, of in {"class frequencies": "frequencies", "closed form": "closed"}.items():
        silent = table[~table.says_so.astype(bool) & table[f"excess_of_{of}"].notna()]
        beyond = (silent[f"excess_of_{of}"] - recommended_calls.WORSE) / silent[f"excess_error_of_{of}"]
        rows[rival] = {
            "silent fits": len(silent),
            "beyond by 2 errors": int((beyond > 2).sum()),
            "by chance": round(len(silent) * student.sf(2, np.inf), 1),
            "least p": student.sf(beyond, silent.n_test - 1).min(),
        }
    found = pd.DataFrame.from_dict(rows, orient="index")
    found["corrected"] = (found["least p"] * found["silent fits"]).clip(upper=1)
    return found


def rows_to_tell() -> pd.DataFrame:
    """A row a call: rows that show an excess of `recommended_calls.WORSE` over the class frequencies by two standard
    errors, in the median of its fits, by the spread of the differences of log-losses; and fits to as many rows."""
    table = results("study", recommended_calls.STUDY_NAME)
    spread = table.excess_error_of_frequencies * np.sqrt(table.n_test)
    needed = (2 * spread / recommended_calls.WORSE) ** 2
    of_call = {"fits": needed, "spread": spread, "rows needed": needed, "fits with as many": needed <= table.n}
    how = {"fits": "count", "spread": "median", "rows needed": "median", "fits with as many": "sum"}
    return pd.DataFrame(of_call).groupby(table.call).agg(how).astype({"rows needed": int, "fits with as many": int})


def times_of_choices() -> dict[str, dict[str, Any]]:
    """Processor time of the choice of the weight."""
    bench = results("study", "choice-of-weight")
    within = bench.parameters <= 1000
    rows = {}
    for title, part in {"at most 1,000 parameters": bench[within], "more": bench[~within]}.items():
        gap = (part.log_loss - part.grid_log_loss).groupby(part.dataset).mean()
        half = student.ppf(0.975, len(gap) - 1) * sem(gap)
        rows[title] = {
            "cases": len(part),
            "data sets": part.dataset.nunique(),
            "median ratio of times": round(part.ratio.median(), 1),
            "least ratio": round(part.ratio.min(), 1),
            "log-loss above the grid's": f"{gap.mean():.4f} ± {half:.4f}",
        }
    return rows


def post_hoc_scores() -> pd.DataFrame:
    """Scores of rescaled and calibrated classifiers."""
    rescaled = {metric: post_hoc.means(metric) for metric in honest.METRICS}
    rescaled_means = {
        TITLES[metric]: table[METHOD_ROWS].groupby("family").mean().round(d)
        for (metric, table), d in zip(rescaled.items(), (1, 3, 3, 3))
    }
    return pd.concat(
        {
            family: pd.DataFrame({title: table.loc[family] for title, table in rescaled_means.items()})
            for family in ("NB", "QDA")
        },
        names=["model", "learner"],
    )
