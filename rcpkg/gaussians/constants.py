"""Numbers that decide something in this room: what each means, where it comes from, what half or twice of it does."""

# Where subtracting a row would lose digits ------------------------------------------------------------------------
# A row leaves a class by a subtraction, which is cheap, or the class is computed anew without it, which is exact.
# The limits leave at least five digits. At half or twice of them the choice changes for a few rows only, and
# densities change within rounding.

#: Least share of the sum of squares of a feature, or of the mean eigenvalue, that a subtraction may leave
LEAST_REST = 1e-3
#: Least product of the condition ratio of K and of 1 - rho z'K^-1 z: a downdate loses about eps over this product
SAFE_DOWNDATE = 1e-6

# What counts as singular ------------------------------------------------------------------------------------------
# Far above rounding, about 1e-16 times the number of features, and far below the covariances of real features. Twice
# as much calls a feature of twice the collinearity singular, so that its class has no density.

#: Least eigenvalue of the correlation matrix of a shrunken covariance, below which the class has no density; and least
#: ratio of the volumes of two classes under the models VEI, VEE and VEV, below which the likelihood counts as unbounded
SINGULAR_RATIO = 1e-10
#: Weight that stands for a class without rows in the iterative models; any number moves no estimate that is far below
#: one row and whose square root is positive
ABSENT = 1e-300
