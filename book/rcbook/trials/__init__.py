"""What the checks of the chapters try, one module a chapter: a cell compares with what is stated."""
