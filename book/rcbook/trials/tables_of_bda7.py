"""What the checks of the chapter *The tables of BDA7* try: readings and designs."""

import numpy as np
import pandas as pd

from rcbook.simulation import chapter5_problem


def two_readings(card: pd.DataFrame) -> dict[tuple[str, int], dict[str, float]]:
    """Errors of nearest means as printed and under two readings."""

    def nearest_means_error(case, d, draw, runs=40):
        errors = []
        for seed in range(runs):
            rng = np.random.RandomState(seed)
            problem = chapter5_problem(case, d, rng)
            X_test, y_test = problem.sample(400, rng)
            means = draw(problem, rng)
            nearest = ((X_test[:, None] - means) ** 2).sum(axis=-1).argmin(axis=1)
            errors.append(100 * np.mean(nearest != y_test))
        return np.mean(errors)

    def estimated(rows, each):
        def draw(problem, rng):
            X, y = problem.sample(9 * rows if each else rows, rng)
            return np.stack([X[y == h][: rows if each else None].mean(axis=0) for h in range(3)])

        return draw

    variants = {
        "40 rows": estimated(40, False),
        "40 a class": estimated(40, True),
        "true means": lambda problem, rng: problem.means,
    }
    NM_printed = card[card["method"] == "NM"].set_index(["table", "setting_value"])["value_printed"]
    return {
        (f"case {case}", d): {"printed": NM_printed[f"5.{12 + case}", str(d)]}
        | {name: nearest_means_error(case, d, draw) for name, draw in variants.items()}
        for case in (1, 2, 6)
        for d in (6, 20)
    }
