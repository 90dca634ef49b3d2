"""The decision regions of thesis2007 figures 5.1 and 5.2: all rows of sonar, features 11 and 21 (chapter 15).

``python -m rcbook.experiments.studies.decision_regions_of_sonar DIRECTORY`` writes the file.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from rcbook import datasets
from rcbook._files import results_folder, stored_file
from rcbook.experiments.runner import write_tables
from rcbook.experiments.studies.tables_of_bda7 import classifier

METHODS = ("BDA7", "QB", "RDA", "EDDA", "NM", "LDA", "QDA")
FEATURES = (11, 21)  # counted from 1
FILE = "thesis2007_figure_5_1.csv"


def sonar_regions(n_cells: int = 50) -> pd.DataFrame:
    """What each classifier, trained on all rows and the features as they are, predicts at the centres of a grid.

    Columns: x11, x21 (the centre), one for each of `METHODS` (1: mine, 0: rock), n_rocks and n_mines (the rows of each
    class in the cell).
    """
    bunch = datasets.load("sonar", "thesis2007")
    X, y = bunch.data[:, [j - 1 for j in FEATURES]], (bunch.target == "M").astype(int)
    edges = [np.linspace(x.min(), x.max(), n_cells + 1) for x in X.T]
    axes = [(edge[1:] + edge[:-1]) / 2 for edge in edges]
    centres = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    table = pd.DataFrame(centres, columns=[f"x{j}" for j in FEATURES])
    for method in METHODS:
        table[method] = classifier(method, 2, 0, False).fit(X, y).predict(centres)
    for h, name in enumerate(("n_rocks", "n_mines")):
        table[name] = np.histogram2d(*X[y == h].T, bins=edges)[0].astype(int).ravel()
    return table


def write(directory: str | Path) -> None:
    """Write the table as a CSV file."""
    write_tables(directory, {FILE: sonar_regions()}, digits=6)


def stored() -> pd.DataFrame:
    """The table as it is kept with the results."""
    return pd.read_csv(stored_file(results_folder() / FILE, f"write it by `python -m {__name__} FOLDER`"))


if __name__ == "__main__":
    write(sys.argv[1])
