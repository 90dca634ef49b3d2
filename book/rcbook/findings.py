"""The numbers that the front page and the page of findings print, made from stored results."""

import re

import numpy as np

from rcbook import published
from rcbook._files import checkout
from rcbook.experiments import results
from rcbook.experiments.comparisons import contest
from rcbook.experiments.studies import (
    bda7_among_todays_classifiers,
    calibrated_networks,
    calibrated_networks_mended,
    gain_of_calibration,
)
from rcbook.experiments.studies import gaps as study_of_gaps
from rcbook.experiments.studies.honest_comparison import ROPE, means

POOLED, PUBLISHED, LOGISTIC = "RC safe, pooled target", "RC as published", "logistic regression, tuned"
FAMILIES = {"nb": ("NB", "NB MAP", "NB MAP"), "qda": ("QDA", "QDA ML", "QDA MAP")}


def numbers() -> dict[str, str]:
    """All numbers, as words for the text."""
    found = {
        **histories(),
        **honest(),
        **sonar(),
        **few_rows(),
        **preconditioning(),
        **chosen(),
        **networks(),
        **gaps(),
        **errata(),
    }
    return {name: f"{number:,}" if isinstance(number, int) else number for name, number in found.items()}


def histories() -> dict[str, int]:
    """On how many runs of RC as published on all rows a loss rises in some update, and the soft error ends lower."""
    study = results("study", "training-histories")
    runs = study[study.method == "RC"].pivot_table(index=["row", "setting_value"], columns="metric", values="value")
    return {
        "rc_runs": len(runs),
        "rc_log_loss_rises": int((runs.log_loss_rises > 0).sum()),
        "rc_soft_error_rises": int((runs.soft_error_rises > 0).sum()),
        "rc_soft_error_lower": int((runs.soft_error_last < runs.soft_error_first).sum()),
    }


def honest() -> dict[str, int]:
    """RC with the pooled target against RC as published and against logistic regression, by held-out log-loss."""
    scores = means("log_loss")
    found = {}
    for key, (family, ours, theirs) in FAMILIES.items():
        pairs = [(f"{POOLED} ({ours})", rival) for rival in (f"{PUBLISHED} ({theirs})", f"{LOGISTIC} ({family})")]
        table = contest(scores, pairs, ROPE["log_loss"])
        for rival, row in zip(("published", "logistic"), table.itertuples(), strict=True):
            found |= {f"{key}_{rival}_{name}": getattr(row, name) for name in ("sets", "better", "level", "worse")}
    return found


def chosen() -> dict[str, int]:
    """`RiskCalibrationCV` against the closed form and against logistic regression, over pairs of a model and a set."""
    losses = gain_of_calibration.means(gain_of_calibration.divisions(), "log_loss")
    ours, closed = gain_of_calibration.CHOSEN, gain_of_calibration.CLOSED
    aside = losses[losses.index.get_level_values("set").isin(list(gain_of_calibration.SET_ASIDE))]
    found = {
        "chosen_pairs": len(losses),
        "chosen_aside_pairs": len(aside),
        "chosen_aside_better": int(contest(aside, [(ours, closed)], ROPE["log_loss"]).better.item()),
    }
    for rival in gain_of_calibration.CLOSED, gain_of_calibration.LOGISTIC:
        row = contest(losses, [(ours, rival)], ROPE["log_loss"]).iloc[0]
        key = "closed" if rival == gain_of_calibration.CLOSED else "logistic"
        found |= {f"chosen_{key}_{name}": int(row[name]) for name in ("better", "level", "worse")}
    return found


def networks() -> dict[str, int]:
    """Calibrated k-dependence networks against a forest, boosting and HDP by log-loss, over all stored sets of the
    study but those on which grids were tried."""
    study, before = calibrated_networks_mended, calibrated_networks
    stored = study.stored()
    names = [name for name in stored if name not in before.TRIED]
    losses = study.means("log_loss", names)
    table = study.hypotheses(losses, {label: study.stored(**of) for label, of in study.GROUPS.items()})
    against_networks = table.hypothesis == 4
    found = {
        "net_sets": len(names),
        "net_missing": len(before.sets()) - len(stored),
        "net_tests": len(table),
        "net_confirmed_for": int((table.outcome[~against_networks] == "as stated").sum()),
        "net_confirmed_against": int((table.outcome[against_networks] == "as stated").sum()),
        "net_reverse": int((table.outcome == "the reverse").sum()),
    }
    for target in "pooled", "nested":
        ours = f"KDB, RC safe, {target} target"
        for key, rival in ("", before.FOREST), ("hdp_", study.HDP):
            against = contest(losses, [(ours, rival)], ROPE["log_loss"]).iloc[0]
            found |= {f"net_{target}_{key}{name}": int(against[name]) for name in ("better", "worse")}
        many = table[against_networks & (table.target == target) & (table.group == "all")].iloc[0]
        found |= {f"net_{target}_behind": int(many.worse), "net_many": int(many.sets)}
    return found


def gaps() -> dict[str, int]:
    """On how many sets of numbers QDA calibrated with gaps in view, or its rival, has less log-loss with half of the
    values missing; on how many of each arm ours has less than all rivals of hypothesis 1; and the median time of a fit
    in units of the time of boosting on masked copies."""
    arm = study_of_gaps.NUMBERS
    losses = study_of_gaps.losses_of(arm)
    ours, shown = study_of_gaps.candidate(arm, losses), study_of_gaps.SHOWN_BOOSTING
    losses = losses.xs("50% at random", level="kind")
    rivals = {"boosting": study_of_gaps.BOOSTING, "logistic": "logistic regression, multiple"}
    losses = losses[[ours, shown, *rivals.values()]].dropna()
    better = {f"gaps_{key}_better": int((losses[ours] < losses[rival]).sum()) for key, rival in rivals.items()}
    stated = study_of_gaps.hypotheses()
    for row in stated[(stated.hypothesis == "1") & (stated.kind == "50% at random")].itertuples():
        better |= {f"gaps_every_{row.arm}": int(row.better), f"gaps_sets_{row.arm}": int(row.sets)}
    fits = study_of_gaps.seconds(arm, "fit_seconds").median()
    better["gaps_times"] = round(fits[ours] / fits[shown])
    return {"gaps_sets": len(losses), "gaps_masked_copies_ahead": int((losses[shown] < losses[ours]).sum()), **better}


def sonar() -> dict[str, str]:
    """QDA on sonar: the test error that rc2025 prints in Table 5, and ours by the protocol that it states."""
    found = {}
    for key, cells in ("printed", published.table("rc2025", "5")), ("ours", results("rc2025", "5")):
        cell = cells[(cells.dataset == "sonar") & (cells.method == "ML") & (cells.metric == "test_error_percent")]
        found[f"sonar_{key}"] = f"{cell.value.item():.0f}"
    return found


def few_rows() -> dict[str, int]:
    """On how many sets BDA7 errs more than a tuned support vector machine, with five rows a class and with half, and on
    how many by more than two standard errors for new rows."""
    study = results("study", "bda7-2026")
    excess = study[(study.metric == "excess_over_BDA7") & (study.method == "SVM")]
    rows = study[study.metric.isin(["train_rows", "test_rows"])]
    rows = rows.pivot(index=["row", "setting_value"], columns="metric", values="value")
    for_new_rows = np.sqrt(1 + bda7_among_todays_classifiers.RUNS * rows.test_rows / rows.train_rows)  # nadeau2003
    excess = excess.set_index(["row", "setting_value"])
    clear = excess.value < -2 * excess.value_se * for_new_rows
    behind, clearly = ((of.groupby("setting_value").sum()) for of in (excess.value < 0, clear))
    return {
        "bda7_sets": len(excess) // 2,
        "bda7_behind_few": int(behind["few"]),
        "bda7_behind_half": int(behind["half"]),
        "bda7_clearly_few": int(clearly["few"]),
        "bda7_clearly_half": int(clearly["half"]),
    }


def preconditioning() -> dict[str, int | str]:
    """On how many sets L-BFGS needs fewer iterations, to a gap of a thousandth, in the coordinates of WANBIA-C."""
    study = results("study", "wanbiac-coordinates")
    needed = study[study.metric == "iterations_1e-3"].pivot(index="row", columns="method", values="value")
    plain = needed[["natural", "closed form"]].dropna()
    white = needed[["whitened", "closed form"]].dropna()
    return {
        "wn_sets": len(plain),
        "wn_fewer": int((plain["closed form"] < plain["natural"]).sum()),
        "wn_median": f"{(plain['natural'] / plain['closed form']).median():.1f}",
        "wn_white_sets": len(white),
        "wn_white_fewer": int((white["whitened"] < white["closed form"]).sum()),
    }


def errata() -> dict[str, int]:
    """How many entries the page of errata has for the sources."""
    text = (checkout() / "book" / "errata.md").read_text(encoding="utf-8").split("(errata-book)=")[0]
    return {"errata": len(re.findall(r"^\d+\. ", text, re.MULTILINE))}
