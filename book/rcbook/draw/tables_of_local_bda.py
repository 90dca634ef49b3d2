"""Figures and tables of the chapter *The tables of local BDA*: agreement, curves, sentences."""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
from IPython.display import display
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from rcbook.experiments.studies import readings_of_local_bda
from rcbook.experiments.studies.printed_sizes_of_local_bda import printed_sizes, shares
from rcbook.figures import label_lines
from rcbook.published import table as printed_table
from rcpkg.local import GRID
from rcpkg.plotting import palette


def overview(card: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, pd.DataFrame], dict[str, str]]:
    """Cells of the scorecard that print the same, are consistent or differ, table by table."""
    ours = ["6.1", "6.2", "6.3"]
    card = card[(card["source"] == "thesis2007") & card["table"].isin(ours)]
    tested = card[~card["row"].str.startswith("Heart")]
    counts = {
        rows: pd.crosstab(part["table"], part["verdict"])
        for rows, part in (("all", card), ("without heart", tested))
    }
    short = {
        "reproduced": "same",
        "statistically consistent": "consistent",
        "differs: explained": "explained",
        "differs: unexplained": "unexplained",
    }
    return card, counts, short


def generative_rules(card: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Least errors of cross-validation, printed and ours."""
    columns = {"value_printed": "printed", "value": "ours", "value_se": "standard error"}
    least_errors = (
        card[card["table"] == "6.1"]
        .set_index(["method", "row"])[list(columns)]
        .rename(columns=columns)
        .astype(float)
        .round(2)
        .sort_index()
        .rename_axis([None, None])
    )
    models = ["Local BDA", "Local Nearest Means", "GMM"]
    return least_errors, models


def curves(path: pd.DataFrame) -> Figure:
    """Cross-validation errors against the neighbourhood size, for four cells."""
    shown = [("Heart", "Local BDA"), ("Ionosphere", "Local Nearest Means")]
    shown += [("Iris", "k-NN"), ("Sonar", "Local Nearest Means")]
    fig, axes = plt.subplots(2, 2, figsize=(6.4, 4.8))
    for ax, (dataset, method) in zip(axes.flat, shown):
        curve = path.query("dataset == @dataset and method == @method").sort_values("k")
        least = curve["error"].min()
        half = 2 * curve["excess_se"]
        low, high = curve["error"] - half, curve["error"] + half
        ax.fill_between(curve["k"], low, high, alpha=0.25, label="2 paired s.e.")
        ax.plot(curve["k"], curve["error"], marker=".", label="error")
        ax.axhline(least, color="0.6", lw=0.8)
        chosen = printed_sizes()[dataset, method]
        ax.axvline(chosen, color=palette[4], ls=":", label="printed size")
        ax.set(xscale="log", title=f"{dataset}, {method}", ylim=(0, None))
        ax.set(xlabel="k", ylabel="error, %")
    places = {"error": (26, 11, "right"), "2 paired s.e.": (1, 8, "left"), "printed size": (12, 14, "right")}
    label_lines(axes[1, 0], places)
    return fig


def mixtures() -> tuple[pd.DataFrame, Callable[..., Any]]:
    """Printed errors of the mixtures and ours under three readings."""
    mixture_readings = readings_of_local_bda.judged_readings()

    def under_readings(table):
        """Printed errors and ours under each reading, and how many agree."""
        part = mixture_readings[mixture_readings.table == table]
        under = part.pivot(index="row", columns="reading", values="value")
        under.insert(0, "printed", part.groupby("row").printed.first())
        agree = part.groupby("reading")[["agreed", "agrees"]].sum().T
        under = under.map("{:.0f}".format if table == "6.3" else "{:.2f}".format)
        for label, row in zip(("agree as stated", "agree"), agree.index):
            under.loc[label] = agree.loc[row].astype(str)
        under.columns = [
            name.removeprefix("gmm-").removeprefix("test-").removeprefix("size-") for name in under.columns
        ]
        under.columns = under.columns.str.replace("-", " ")
        return under.fillna("").rename_axis(index=None, columns=None)

    return mixture_readings, under_readings


def tenths() -> tuple[pd.DataFrame, pd.DataFrame, Callable[..., Any]]:
    """Printed test errors beside models of nine tenths of the rows."""
    tested = shares()
    stated = tested[tested["reference"] == "training rows"]
    names = {
        "printed": ("", "printed"),
        "all_rows": ("", "all rows"),
        "mean_0.9": ("nine tenths", "mean"),
        "sd_0.9": ("nine tenths", "SD"),
        "z_0.9": ("nine tenths", "z"),
        "z_0.8": ("eight tenths", "z"),
    }

    def listed(rows):
        chosen = rows.set_index(["dataset", "method"])[list(names)]
        text = chosen.map(lambda v: f"{v:.2f}" if v == v else "")
        text = text.rename(index={"Local Nearest Means": "local means"})
        heads = pd.MultiIndex.from_tuples(names.values())
        return text.set_axis(heads, axis=1).rename_axis([None, None])

    return tested, stated, listed


def sentences() -> tuple[
    pd.DataFrame,
    pd.DataFrame,
    list[str],
    pd.DataFrame,
    pd.Series,
    pd.Series,
    pd.Series,
    list[str],
    dict[str, bool],
]:
    """Statements of the source, and whether the printed tables bear them out."""

    def printed(number):
        table = printed_table("thesis2007", number)
        return table.pivot(index="row", columns="method", values="value").astype(float)

    cv, test, chosen = printed("6.1"), printed("6.2"), printed("6.3")
    local = ["k-NN", "pinv", "Local Nearest Means", "Local BDA", "SVM-KNN"]
    both = pd.concat([cv, test])
    second = test.drop(columns="Local BDA").min(axis=1)
    gain = 100 * (second - test["Local BDA"]) / second
    pen, letters = test.loc["Pen Digits"], test.loc["Letter Rec."]
    worst = both[local].idxmax(axis=1)
    letters_k = chosen.loc["Letter Rec. (26 classes)", ["Local BDA", "pinv", "k-NN", "SVM-KNN"]]
    vowel_k = chosen.loc["Vowel (11 classes)", ["k-NN", "pinv", "Local Nearest Means", "SVM-KNN"]]
    lost_by_svm = list(both.index[both["SVM-KNN"] > both["k-NN"]])
    lowest = cv[["Local BDA", "Local Nearest Means"]].min(axis=1) == cv.min(axis=1)
    claims = {
        "6.1: local BDA or local nearest means lowest on all seven": lowest.all(),
        "6.1: local BDA better than pinv and SVM-KNN in every case": (
            cv["Local BDA"] < cv[["pinv", "SVM-KNN"]].min(axis=1)
        ).all(),
        "6.2: local BDA best in 3 of 7, ties counted": (test["Local BDA"] == test.min(axis=1)).sum() == 3,
        "6.2: local BDA best in 3 of 7, ties not counted": (gain > 0).sum() == 3,
        "6.2: 18 % better than the second, SVM-KNN, on letters": (
            round(gain["Letter Rec."]) == 18 and letters.drop("Local BDA").idxmin() == "SVM-KNN"
        ),
        "6.2: 11 % better than the second, pinv, on pen digits": round(gain["Pen Digits"]) == 11,
        "local nearest means is the worst local rule on image segmentation": worst["Image Seg."]
        == "Local Nearest Means",
        "... and on other data sets, in the plural": (worst == "Local Nearest Means").sum() > 1,
        "pinv is worse than k-NN on two data sets only": (both["pinv"] > both["k-NN"]).sum() == 2,
        "SVM-KNN loses to k-NN on iris only": lost_by_svm == ["Iris"],
        "letters: k = 20, 520 rows; pinv 6, k-NN 1, SVM-KNN 100": list(letters_k) == [20, 6, 1, 100]
        and 20 * 26 == 520,
        "vowel: local BDA sees 55 rows, the others choose k = 1 or 2": (
            chosen.loc["Vowel (11 classes)", "Local BDA"] * 11 == 55 and vowel_k.max() <= 2
        ),
        "vowel is a data set on which local BDA performs best": (
            test.loc[["Vowel", "Vowel (raw)"]].idxmin(axis=1) == "Local BDA"
        ).any(),
        "heart, iris, wine: sizes of large portions of the smallest class": all(
            chosen.loc[row, "Local BDA"] > size / 2
            for row, size in [("Heart (2 classes)", 120), ("Iris (3 classes)", 50), ("Wine (3 classes)", 48)]
        ),
        "a size within the stated grid everywhere": bool(
            chosen.drop(columns="GMM").isin(GRID).all(axis=None)
        ),
        "no mixture beats the best local rule anywhere": (both["GMM"] > both[local].min(axis=1)).all(),
        "chapter 8: local BDA beats local nearest means on all fourteen": (
            both["Local BDA"] < both["Local Nearest Means"]
        ).all(),
    }
    verdicts = {k: "holds" if v else "does not hold" for k, v in claims.items()}
    with pd.option_context("display.max_colwidth", None):  # whole sentences
        display(pd.Series(verdicts).to_frame("verdict"))
    return test, chosen, local, both, gain, pen, worst, lost_by_svm, claims


def sentences_mended(
    pen: pd.Series,
    both: pd.DataFrame,
    test: pd.DataFrame,
    local: Sequence[str],
    gain: pd.Series,
    lost_by_svm: Sequence[str],
    worst: pd.Series,
    chosen: pd.DataFrame,
) -> dict[str, int | str]:
    """What the printed tables give in place of the sentences that do not hold."""
    over_svm = 100 * (1 - pen["Local BDA"] / pen["SVM-KNN"])
    unbeaten = both.index[both["Local BDA"] >= both["Local Nearest Means"]]
    usps = test.loc["USPS (raw)", local] / 100

    def whole_numbers(n):
        off = [abs(100 * round(e * n) / n - 100 * e) for e in usps]
        return "yes" if max(off) < 0.00501 else "no"

    return {
        "6.2: local BDA best, ties not counted, on": int((gain > 0).sum()),
        "vowel and vowel (raw): best is": ", ".join(test.loc[["Vowel", "Vowel (raw)"]].idxmin(axis=1)),
        "pen digits: local BDA better than pinv by": (f"{gain['Pen Digits']:.1f} %"),
        "... than SVM-KNN, which is third, by": f"{over_svm:.1f} %",
        "SVM-KNN loses to k-NN on": ", ".join(lost_by_svm),
        "local means is the worst local rule on": ", ".join(worst.index[worst == "Local Nearest Means"]),
        "local BDA does not beat local means on": ", ".join(unbeaten),
        "sonar: components chosen": int(chosen.loc["Sonar (2 classes)", "GMM"]),
        "... with the stated cap": 97 // 60,
        "USPS errors whole numbers of 2007 test digits": whole_numbers(2007),
        "... of 2709, the printed number": whole_numbers(2709),
    }


def single_neighbours(chosen: pd.DataFrame, both: pd.DataFrame) -> tuple[dict[str, dict], list[float]]:
    """Printed errors where several rules chose one neighbour."""
    single = chosen[["k-NN", "pinv", "SVM-KNN"]] == 1
    rows, spread = {}, []
    for row in ("Glass (6 classes)", "Thyroid (3 classes)", "Vowel (11 classes)", "Vowel (raw)"):
        short = row.split(" (")[0] if "classes" in row else row
        errors = both.loc[short, single.columns][single.loc[row]]
        spread.append(errors.max() - errors.min())
        rows[short] = {
            "k = 1 chosen by": ", ".join(errors.index),
            "errors": ", ".join(f"{e:.2f}" for e in sorted(set(errors))),
        }
    return rows, spread
