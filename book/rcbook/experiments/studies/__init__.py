"""One module for each group of printed tables or study, named after what it computes.

A module has ``cells(table)``, which lists what is computed, and the protocols that compute it; or it writes a file of
numbers at once. ``rcbook.experiments.cells`` names the module of each table. They import the machine of
`rcbook.experiments`, which finds them by their names.
"""
