"""What the docstrings of the families share."""

from functools import partial

from rcpkg._docs import documented

BLOCKS = {
    "log_prob": """
    parameters_ : CategoricalParameters
        log_prior (r,), and log_prob (r, K); None while the rows of ``partial_fit`` do not suffice.
    """,
    "n_states": """
    n_states : int or array of shape (d,), optional
        Number of states r_j of each feature, coded 0 … r_j − 1; by default the states are those of the training rows.
    """,
    "prior of tables": """
    prior_strength : float or array of shape (d,), default=1.0
        Pseudo-rows m₀ ≥ 0 of each conditional distribution, m₀/r_j a state; 0 is maximum likelihood, where a
        distribution of which no row tells is uniform.
    """,
    "class_prior_strength or none": """
    class_prior_strength : float, optional
        Pseudo-rows m₀ ≥ 0 of the class distribution, m₀/r a class; by default as many as ``prior_strength``, or none
        where that is an array.
    """,
    "class_prior_strength": """
    class_prior_strength : float, optional
        Pseudo-rows m₀ ≥ 0 of the class distribution, m₀/r a class; by default as many as ``prior_strength``.
    """,
    "priors": """
    priors : array of shape (r,), optional
        Class probabilities, in the order of ``classes_``; by default they are estimated.
    """,
    "tables": """
    statistics_ : Statistics
        Weighted counts of the rows: count (r,), and cells (r, K), the tables of all features side by side, the states
        of the parents first.
    %(log_prob)s
    families_ : Families
        Layout of the tables; ``families_.split(statistics_.cells)`` are those of the features.
    n_states_ : array of shape (d,)
        Numbers of states, declared or learnt.
    categories_ : list of d arrays
        The states of each feature, codes or names.
    """,
    "prior_mean": """
    prior_mean : float, array of shape (d,) or "grand", default=0.0
        μ₀, in the units of the features; "grand" is the mean of all rows.
    """,
    "prior_covariance": """
    prior_covariance : float, array of shape (d, d), "pooled" or "diagonal", default=1.0
        Σ₀, in squared units of the features; a number stands for that multiple of the identity, "pooled" for the
        covariance within the classes, "diagonal" for its diagonal, which do not depend on the units.
    """,
    "prior variances": """
    prior_covariance : float, array of shape (d,), "pooled" or "diagonal", default=1.0
        Prior variances σ²₀, in squared units of the features; a number holds for all of them. "pooled" and "diagonal"
        both stand for the variances within the classes, which do not depend on the units.
    """,
    "singular_ridge": """
    singular_ridge : float, default=2.0
        Variance that a singular covariance is given in addition, in multiples of the variance of each feature within
        the classes, and that all classes are given in directions in which the rows do not differ at all. Such a prior
        acts only where ``prior_strength`` is zero and maximum likelihood fails, or rests on few rows. Features that are
        constant in all rows take no part. With 0 they do, and a singular covariance is an error: maximum likelihood as
        in the sources.
    """,
    "ridge of variances": """
    singular_ridge : float, default=2.0
        Where a variance is zero, those of all features (of the class, or of all classes if they share them) are
        given this in addition, in multiples of the variance of each feature within the classes. Such a prior acts only
        where ``prior_strength`` is zero and maximum likelihood fails, or rests on few rows. Features that are constant
        in all rows take no part. With 0 they do, and a variance of zero is an error: maximum likelihood as in the
        sources.
    """,
    "gaps by EM": """
    Missing values (NaN) are marginalised in predictions, exactly. In training, where they are taken to be missing at
    random, EM climbs to a maximum of the likelihood of what is seen, up to 1000 steps; calibration takes complete rows.
    """,
    "gaps by feature": """
    Missing values (NaN) are marginalised in predictions, exactly. In training, where they are taken to be missing at
    random, means and variances are those of the values seen. Fixed and safe steps of calibration take such rows, too;
    targets and `ConditionalLikelihood` refuse them.
    """,
    "means_": """
    means_ : array of shape (r, d)
        Means of the classes.
    """,
    "origin_ and varying_": """
    origin_ : array of shape (d,)
        Mean of the rows that the model was first fitted to, or their median where the mean lies far off; further rows
        that lie far from it move it.
    varying_ : array of shape (d,)
        Whether a feature takes part: all do that are not constant. The shapes in ``statistics_`` and ``parameters_``
        count these.
    """,
    "errors of variances": """
    features, since the errors of d variances add up. All variances are then given the ridge times
    ``rows_per_feature`` − ν/d; else they are those of maximum likelihood, unless one is zero. 0: always so.
    """,
    "another prior": """
    Where there are hardly more rows than features, maximum likelihood exists, and is far too sure of itself: hence
    ``rows_per_feature``. ``prior_strength=20.0, prior_covariance="diagonal", prior_mean="grand"``, say, is another
    prior that does not depend on units, for more rows, too. Weights count as rows; no row counts for less than one.
    """,
}
documented = partial(documented, **BLOCKS)
