"""Numbers that decide something in this room: what each means, where it comes from, what half or twice of it does."""

#: Least share of the sum of squares of a feature, or of the mean eigenvalue, that the subtraction by which a row leaves
#: a class may keep: else the class is computed anew without it, which is slow. That keeps at least five digits. Half or
#: twice chooses otherwise for a few rows only, and densities change within rounding.
LEAST_REST = 1e-3
#: Weight that stands for a class without rows in the iterative models; any number moves no estimate that is far below
#: one row and whose square root is positive
ABSENT = 1e-300
