"""Words for the names that code and results files use: one vocabulary for the tables and figures of the book."""

import re

__all__ = ["RAW", "WORDS", "in_words"]

WORDS = {
    "bayes_parameter": "parameter",
    "bayes_restricted": "restricted",
    "bayes_unrestricted": "unrestricted",
    "breast_cancer": "breast cancer",
    "breast_cancer_wisconsin": "breast cancer (Wisconsin)",
    "calibration_error": "calibration error",
    "census_income_kdd": "census income (KDD)",
    "closed_form": "closed form",
    "connect_4": "Connect-4",
    "cost_ratio": "ratio of costs",
    "count_better": "sets better",
    "count_equal": "sets equal",
    "count_worse": "sets worse",
    "difference_by_bif": "difference through the file",
    "error_pyagrum": "error of pyAgrum",
    "fit_pyagrum": "fit by pyAgrum",
    "fit_ratio": "ratio of fits",
    "gambosi2020": "Gambosi (2020)",
    "generalized_i": "generalised I-divergence",
    "itakura_saito": "Itakura–Saito",
    "kr_vs_kp": "chess (king–rook against king–pawn)",
    "log_evidence": "log evidence",
    "log_loss": "log-loss",
    "log_loss_pyagrum": "log-loss of pyAgrum",
    "m_instances": "rows",
    "maximum_likelihood": "maximum likelihood",
    "musk_1": "Musk 1",
    "n_h": "rows of the class",
    "n_variables": "variables",
    "new_thyroid": "new thyroid",
    "other_edges": "edges of one only",
    "p_value": "p-value",
    "poker_hand": "poker hand",
    "post_operative": "post-operative",
    "predict_pyagrum": "prediction by pyAgrum",
    "predict_ratio": "ratio of predictions",
    "rc2024": "Pérez et al. (2024)",
    "rc2025": "Pérez et al. (2025)",
    "relative_entropy": "relative entropy",
    "simulated_se": "standard error of the simulation",
    "soft_error": "soft error",
    "squared_bias": "squared bias",
    "std_error": "standard error",
    "target_weight": "weight of the target",
    "thesis2007": "Srivastava (2007)",
    "total_squared_difference": "total squared difference",
    "wanbia2014": "Zaidi et al. (2014)",
    "zero_one_loss": "0–1 loss",
}
"""Words for each raw name that is shown."""

KEY = r"(?<![\w.])(?:[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+|(?:rc|thesis|wanbia|gambosi)\d{4}\w?)(?![\w.(=])"
RAW = re.compile(KEY)
"""A raw name in a text: lower dashes between its parts, or the key of a source; an argument of a call is none."""


def in_words(text: str) -> str:
    """The text with each raw name of the vocabulary replaced by its words.

    >>> in_words("log_loss of rc2025, by QDA(prior_strength=1)")
    'log-loss of Pérez et al. (2025), by QDA(prior_strength=1)'
    """
    return RAW.sub(lambda found: WORDS.get(found[0], found[0]), text)
