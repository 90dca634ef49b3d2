"""The machinery of the book: data sets, printed tables, experiments, checks, and the look of its figures."""
