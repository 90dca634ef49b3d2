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
        Class probabilities π_y of the model, in the order of ``classes_``; by default they are estimated. A
        ``class_prior`` of a prediction is that of another population: it leaves the model as it is.
    """,
    "tables": """
    statistics_ : Statistics
        Weighted counts of the rows: count (r,), and cells (r, K), the tables of all features side by side, the states
        of the parents first.
    %(log_prob)s
    family_ : Family
        Its ``families_`` are the layout of the tables: ``families_.split(statistics_.cells)`` are those of the
        features.
    n_states_ : array of shape (d,)
        Numbers of states, declared or learnt.
    categories_ : list of d arrays
        The states of each feature, codes or names.
    """,
    "parameters of Gaussians": """
    prior_strength : float, default=0.0
        m ≥ 0, in pseudo-rows, for each mean and each covariance; 0 is maximum likelihood.
    prior_mean : float, array of shape (d,) or "grand", default=0.0
        μ₀, in the units of the features; "grand" is the mean of all rows.
    prior_covariance : float, array, "pooled" or "diagonal", default=1.0
        Σ₀, in squared units of the features, of shape (d, d) or, of independent features, (d,). A number stands for
        that multiple of the identity, "pooled" for the covariance within the classes, "diagonal" for its diagonal,
        which do not depend on the units.
    singular_ridge : float, default=2.0
        Variance that a singular covariance is given in addition, in multiples of the variance of each feature within
        the classes, and that all classes are given in directions in which the rows do not differ at all. Such a prior
        acts only where ``prior_strength`` is zero and maximum likelihood fails, or rests on few rows. A feature that is
        constant within each class but not in all rows, of which a warning tells, is given its variance in all rows, as
        often as it is given here divided by the number of rows. Features that are
        constant in all rows take no part. With 0 they do, and a singular covariance, or a variance of zero, is an
        error: maximum likelihood as in the sources.
    rows_per_feature : float, default=3.0
        κ. Rows are few where a covariance has ν < κd degrees of freedom: the rows that it is taken from, of a class on
        average, or of all that share it, less the means that they give. All covariances then have the ridge times
        κ − ν/d; else they are those of maximum likelihood and of scikit-learn, unless singular. 0: always so.
    %(class_prior_strength)s
    %(priors)s
    """,
    "attributes of Gaussians": """
    %(classes and prior)s
    statistics_ : Statistics
        Weighted sums of the rows about the origin of the family: count (r,), first (r, d) and second, of the shape of
        ``covariances_``; where values of independent features were missing in training their weights ``seen`` (r, d).
    parameters_ : GaussianParameters
        log_prior (r,), mean (r, d), covariance and whitener; None while the rows of ``partial_fit`` do not suffice.
    means_ : array of shape (r, d)
        Means of the classes.
    covariances_ : array of shape (r, d, d)
        Covariances within the classes, (d, d) where they share them; of independent features variances, (r, d) or (d,).
    family_ : Family
        Its ``origin_`` (d,) is the mean of the rows that the model was first fitted to, or their median where the mean
        lies far off; further rows that lie far from it move it. Its ``varying_`` (d,) says which features take part:
        all do that are not constant. The shapes in ``statistics_`` and ``parameters_`` count these.
    """,
    "gaps by EM": """
    Missing values (NaN) are marginalised in predictions, exactly. In training, where they are taken to be missing at
    random, EM climbs to a maximum of the likelihood of what is seen, up to 1000 steps. Calibration takes such rows by
    safe steps; `ConditionalLikelihood` refuses them.
    """,
    "gaps by feature": """
    Missing values (NaN) are marginalised in predictions, exactly. In training, where they are taken to be missing at
    random, means and variances are those of the values seen. Calibration takes such rows by safe steps;
    `ConditionalLikelihood` refuses them.
    """,
    "another prior": """
    Where there are hardly more rows than features, maximum likelihood exists, and is far too sure of itself: hence
    ``rows_per_feature``. ``prior_strength=20.0, prior_covariance="diagonal", prior_mean="grand"``, say, is another
    prior that does not depend on units, for more rows, too. Weights count as rows; no row counts for less than one.
    """,
}
documented = partial(documented, **BLOCKS)
