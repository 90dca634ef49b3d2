"""The weight of the target: Newton's optimum, the row left out, and the estimator that chooses."""

import warnings

import numpy as np
import pytest
from model_cases import GAUSSIAN, ML, NETWORKS, OF_EACH_FAMILY, of_each_family, refused, rows_for, slow
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer, log_loss
from sklearn.model_selection import GridSearchCV, KFold, PredefinedSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline

from rcpkg import (
    BDA7,
    LDA,
    QDA,
    CategoricalNB,
    ConditionalLikelihood,
    GaussianNB,
    MultinomialNB,
    RiskCalibration,
    RiskCalibrationCV,
)
from rcpkg.calibration import choose_weight, left_out, target_path
from rcpkg.calibration.constants import NEWTON_TOL
from rcpkg.calibration.curvature import Woodbury, WoodburyByDifferences
from rcpkg.calibration.logistic import Curvature
from rcpkg.calibration.target_path import TargetPath
from rcpkg.rows import Rows

WEIGHTS = [0.1, 1.0, 3.0, 10.0]

TARGETS = [(name, target) for name in ML for target in ("pooled", "generative", "grand")]
TARGETS += [(name, "nested") for name in NETWORKS]
# of each family every target, and in the quick suite one: which of them goes round
each_target = pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(*case, marks=[pytest.mark.slow] * (case[0] not in OF_EACH_FAMILY or (i + i // 3) % 3 > 0))
        for i, case in enumerate(TARGETS)
    ],
)


def learner(model, weight=1.0, target="pooled", **settings):
    settings = {"step": "safe", "stopping": "none", "tol": 1e-12, "max_iter": 4000} | settings
    return RiskCalibration(model, target=target, target_weight=weight, **settings)


def newton(name, target, seed=0):
    X, y = rows_for(name, seed)
    model = clone(ML[name])
    X, y = model._check_X_y(X, y)
    return TargetPath.from_estimator(model, target, X, y), X, y


def kept(path):
    """log p(y | x) of the rows at the maximum."""
    return path.path.point.log_posterior(path.objective.X)


@each_target
def test_newton_arrives_where_safe_steps_do(name, target):
    path, X, y = newton(name, target)
    path.follow(0.3)
    safe = learner(ML[name], 0.3, target).fit(X, y)
    assert_allclose(np.exp(kept(path)), safe.predict_proba(X), atol=2e-4)
    F = path.conditional
    theirs = F.evaluate(safe.estimator_.statistics_)
    # what the stopping rule of Newton's method leaves at most
    assert F.size * F(path.path.point.z).value <= F.size * theirs.evaluation.value + 2 * NEWTON_TOL * F.size


@each_target
def test_a_row_of_little_weight_left_out_is_a_refit_without_it(name, target):
    """One Newton step errs by the square of the weight, a hundredth of what it computes where this is 0.01."""
    X, y = rows_for(name)
    without, _, _ = newton(name, target)
    without.follow(3.0)
    refit = kept(without)[7]
    off = []
    for weight in 0.1, 0.01:
        rows, labels = clone(ML[name])._check_X_y(np.vstack([X, X[7]]), np.append(y, y[7]))
        model = clone(ML[name])
        model._check_X_y(rows, labels)
        weights = np.append(np.ones(len(y)), weight)
        with_it = TargetPath.from_estimator(model, target, rows, labels, weights)
        with_it.follow(3.0)
        left_out, _ = with_it.left_out()
        off.append(np.abs(left_out[-1] - refit).max() / np.abs(kept(with_it)[-1] - refit).max())
    assert off[1] < 0.02 and off[1] < 0.3 * off[0]


def test_choice_is_the_least_log_loss_and_the_model_that_of_its_weight():
    X, y = load_wine(return_X_y=True)
    model = RiskCalibrationCV(QDA(), target="pooled", cv="loo", closed_form=False).fit(X, y)
    found = model.cv_results_
    assert list(found) == ["target", "target_weight", "log_loss", "error", "std_error", "log_evidence"]
    assert found.target_weight.is_monotonic_increasing and 4 <= len(found) <= 9
    assert model.target_weight_ == found.target_weight[found.log_loss.idxmin()]
    assert model.validation_ == "approximate leave-one-out" and model.converged_
    assert model.n_iter_ == len(model.history_) - 1 >= 1
    assert model.target_weight_ not in (0.01, 100.0)
    fixed = RiskCalibration(QDA(), target_weight=model.target_weight_, tol=1e-12, max_iter=4000).fit(X, y)
    assert_allclose(model.predict_proba(X), fixed.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize(
    ("weights", "named"), [([30.0, 300.0], "30 is the least"), ([0.01, 0.1], "0.1 is the greatest")]
)
def test_a_weight_at_the_end_of_its_grid_is_reported(weights, named):
    X, y = load_wine(return_X_y=True)
    target = "grand" if weights[0] > 1 else "pooled"
    with pytest.warns(UserWarning, match=f"target_weight_={named} of target_weights"):
        RiskCalibrationCV(QDA(), target=target, target_weights=weights, closed_form=False).fit(X, y)


@pytest.mark.parametrize("model", [LDA(), QDA()], ids=repr)
def test_weights_may_lie_as_far_apart_as_numbers_do(model):
    X, y = load_iris(return_X_y=True)
    for weights in ([1e-3, 1e20], [1.0, 1e17, 1e18], [1e-3, 1e-2, 1e30]):
        losses = RiskCalibrationCV(model, target_weights=weights).fit(X, y).cv_results_.log_loss
        assert np.isfinite(losses).all()


def test_classes_of_which_rows_leave_no_doubt_are_told_apart_in_few_steps():
    rng, y = np.random.default_rng(0), np.arange(36) % 3
    X = rng.normal(size=(36, 10))
    X[:, 0] += 20 * y
    with warnings.catch_warnings(action="error", category=RuntimeWarning):
        fit = ConditionalLikelihood(QDA(prior_strength=1.0), target="pooled", target_weight=0.01).fit(X, y)
    assert fit.converged_ and fit.n_iter_ < 20


def test_folds_give_what_a_grid_search_gives():
    X, y = load_iris(return_X_y=True)
    X, y = X[:, 1:3], y
    weights, folds = [0.3, 3.0, 30.0], StratifiedKFold(3, shuffle=True, random_state=0)
    settings = {"target_weights": weights, "cv": folds, "closed_form": False}
    model = RiskCalibrationCV(LDA(), target="pooled", **settings).fit(X, y)
    grid = GridSearchCV(
        RiskCalibration(LDA(), tol=1e-10, max_iter=4000), {"target_weight": weights}, scoring="neg_log_loss", cv=folds
    ).fit(X, y)
    assert_allclose(model.cv_results_.log_loss, -grid.cv_results_["mean_test_score"], rtol=2e-4)
    assert model.target_weight_ == grid.best_params_["target_weight"]
    assert model.validation_ == "3 folds"


def test_error_as_score_is_broken_by_log_loss():
    found = RiskCalibrationCV(QDA(), scoring="error").fit(*load_iris(return_X_y=True))
    best = found.cv_results_.sort_values(["error", "log_loss"]).iloc[0]
    assert found.target_weight_ == best.target_weight


@pytest.mark.parametrize("model", [LDA(), CategoricalNB(prior_strength=1.0)], ids=repr)
def test_weights_count_in_the_means_of_rows_left_out(model):
    """Within folds whole ones are repetitions; a single row is left out with all that it counts."""
    X, y = load_iris(return_X_y=True)
    X, folds = X.round(), list(StratifiedKFold(3).split(X, y))
    weight = 1 + np.random.default_rng(0).integers(3, size=len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    again = [[np.flatnonzero(np.isin(rows, part)) for part in fold] for fold in folds]
    learner = RiskCalibrationCV(model, target="pooled", target_weights=[1.0, 10.0])
    weighted = clone(learner).set_params(cv=folds).fit(X, y, weight).cv_results_
    repeated = clone(learner).set_params(cv=again).fit(X[rows], y[rows]).cv_results_
    assert_allclose(weighted[["log_loss", "error"]], repeated[["log_loss", "error"]], rtol=1e-6)
    path = TargetPath.from_estimator(model := clone(model), "pooled", *model._check_X_y(X, y), weight)
    path.follow(1.0)
    losses = -path.left_out()[0][np.arange(len(y)), y]
    found = clone(learner).set_params(cv="loo").fit(X, y, weight).cv_results_.log_loss
    assert found[0] == pytest.approx(np.average(losses, weights=weight), rel=1e-6)


def test_more_parameters_than_a_hessian_is_made_for_go_to_folds(monkeypatch):
    X, y = load_iris(return_X_y=True)
    monkeypatch.setattr(target_path, "MOST_PARAMETERS", 10)
    with pytest.warns(UserWarning, match="parameters .* 5 folds take its place"):
        model = RiskCalibrationCV(GaussianNB(), target_weights=[3.0, 30.0], cv="loo").fit(X, y)
    assert model.validation_ == "5 folds"
    X = np.random.default_rng(0).poisson(2.0, (60, 5))
    with pytest.warns(UserWarning, match="unequal lengths"):
        RiskCalibrationCV(MultinomialNB(), target_weights=[3.0, 30.0], cv="loo").fit(X, np.arange(60) % 2)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([(np.arange(150), np.arange(0))], "leaves out no row of positive weight"),
        (KFold(3), "class 0 has no row in the training part of a fold"),
        (400, "cv=400 folds need a class of as many rows; the largest class has 50"),
        ([(np.arange(150), np.arange(150))], "cv has row 0 in both parts of a fold: rows that a model has seen"),
        ([(np.arange(0, 150, 2), np.arange(1, 152, 2))], "cv must number rows from 0 to 149 in each of its folds"),
        ([(np.arange(149), [-1])], "cv must number rows from 0 to 149 in each of its folds"),
        (list(np.arange(150) % 3 == np.arange(3)[:, None]), "cv must hold a pair for each fold, .* test rows"),
        (np.arange(150) % 3, "cv must hold a pair for each fold, .* test rows"),
    ],
)
def test_divisions_that_judge_nothing_are_refused(cv, message):
    refused(message, RiskCalibrationCV(LDA(), cv=cv).fit, *load_iris(return_X_y=True))


def test_sums_that_move_their_own_entries_of_a_target_alone_are_differentiated_together(monkeypatch):
    """Those of the features that classes share, too: LDA took a target for each, half of the time of
    `RiskCalibrationCV` on breast cancer."""
    X, y = load_wine(return_X_y=True)
    path, calls = TargetPath.from_estimator(LDA().fit(X, y), "pooled", X, y), []
    monkeypatch.setattr(path, "target_of", lambda statistics: calls.append(0) or TargetPath.target_of(path, statistics))
    form = path.conditional.form
    assert path.change and len(calls) == 3 + form.r * form.width < form.size


def test_masks_of_rows_are_folds():
    X, y = load_iris(return_X_y=True)
    numbers = list(StratifiedKFold(3).split(X, y))
    masks = [tuple(np.isin(np.arange(150), part) for part in fold) for fold in numbers]
    found = (RiskCalibrationCV(LDA(), cv=cv, target_weights=[1.0]).fit(X, y) for cv in (numbers, masks))
    assert_array_equal(*(model.cv_results_.log_loss for model in found))


@pytest.mark.parametrize("closed_form", [True, 0])
def test_a_pipeline_of_the_model_alone_is_the_model(closed_form):
    X, y = load_iris(return_X_y=True)
    settings = {"cv": 3, "target_weights": [1.0, 10.0], "closed_form": closed_form}
    found = (RiskCalibrationCV(model, **settings).fit(X, y) for model in (LDA(), make_pipeline(LDA())))
    assert_allclose(*(model.predict_proba(X) for model in found), atol=1e-12)


@pytest.mark.parametrize("cv", ["auto", "loo", 3])
def test_candidates_learn_from_filled_rows_where_these_have_gaps(cv):
    """What is chosen is then fitted to the rows as they are; folds with their gaps say about the same."""
    X, y = rows_for("CategoricalNB")
    X = X.copy()
    X[3, 1] = np.nan
    learner = RiskCalibrationCV(CategoricalNB(prior_strength=1.0), target_weights=[1.0, 10.0], cv=cv).fit(X, y)
    of = {3: "3 folds"}.get(cv, "approximate leave-one-out of filled rows")
    assert learner.validation_ == of
    gappy = clone(learner).set_params(cv=3, gaps_in_view=0.0).fit(X, y)
    assert_allclose(learner.cv_results_.log_loss, gappy.cv_results_.log_loss, rtol=0.02 if cv == 3 else 0.1)
    b = learner.target_weight_
    fixed = RiskCalibration(CategoricalNB(prior_strength=1.0), target=learner.target_, target_weight=b).fit(X, y)
    assert_allclose(learner.predict_proba(X), fixed.predict_proba(X), atol=1e-4)


def test_gaps_in_blocks_are_filled_too():
    X, y = load_iris(return_X_y=True)
    X[::10, 1] = np.nan
    order = np.random.default_rng(0).permutation(len(y))
    blocks = Rows.from_arrays(X[order], y[order], block_size=60)
    settings = {"target": "pooled", "target_weights": [1.0, 10.0], "cv": 3}
    found = RiskCalibrationCV(LDA(), **settings).fit(blocks)
    fold = np.concatenate([np.random.default_rng([0, n]).permutation(n) % 3 for n in (60, 60, 30)])  # as blocks divide
    whole = RiskCalibrationCV(LDA(), **settings | {"cv": PredefinedSplit(fold)}).fit(X[order], y[order])
    assert_allclose(found.cv_results_.log_loss, whole.cv_results_.log_loss, rtol=1e-3)


# The target as a candidate --------------------------------------------------------------------------------------------


def few_rows_of_noise(seed=0):
    """Rows fewer than the parameters, of which few tell anything."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 20))
    return X, (X[:, 0] + 2 * rng.normal(size=400) > 0).astype(int)


def test_the_target_is_chosen_beside_its_weight():
    """Where few features tell anything LDA that is drawn to the grand target does better than with the pooled one."""
    X, y = few_rows_of_noise()
    found = RiskCalibrationCV(LDA()).fit(X[:80], y[:80])
    assert found.target_ == "grand"
    results = found.cv_results_
    assert set(results.target) == {"pooled", "grand", "closed_form"}
    pooled = RiskCalibrationCV(LDA(), target="pooled").fit(X[:80], y[:80])
    losses = [log_loss(y[80:], model.predict_proba(X[80:])) for model in (found, pooled)]
    assert losses[0] < losses[1]


def test_a_list_of_targets_may_hold_models():
    X, y = load_wine(return_X_y=True)
    given = QDA().fit(X, y)
    found = RiskCalibrationCV(QDA(), target=["generative", given], target_weights=[1.0, 3.0]).fit(X, y)
    assert set(found.cv_results_.target) == {"generative", "QDA", "closed_form"}


@pytest.mark.parametrize("cv", ["loo", 3])
def test_weights_are_found_by_steps_of_ten_and_then_of_three(cv):
    X, y = load_wine(return_X_y=True)
    settings = {"target": "pooled", "cv": cv, "closed_form": False}
    found = RiskCalibrationCV(LDA(), **settings).fit(X, y)
    weights, best = found.cv_results_.target_weight.tolist(), found.target_weight_
    tens = [b for b in weights if np.isclose(np.log10(b) % 1, [0, 1], atol=1e-9).any()]
    assert_allclose(np.diff(np.log10(tens)), 1)
    assert weights[0] < best < weights[-1]
    whole = RiskCalibrationCV(LDA(), target_weights=choose_weight.TARGET_WEIGHTS, **settings).fit(X, y)
    assert found.cv_results_.log_loss.min() == pytest.approx(whole.cv_results_.log_loss.min(), rel=1e-4)
    given = RiskCalibrationCV(LDA(), target_weights=[0.01, 0.1], **settings).fit(X, y)
    assert len(given.cv_results_) == 2


@pytest.mark.slow
def test_a_walk_over_weights_ends_where_optima_are_out_of_reach():
    """Separable counts: each further weight took 1,000 steps a fold, and the last one was chosen unreached."""
    rng = np.random.default_rng(6)
    y = np.arange(20) % 2
    X = rng.poisson(20.0, (20, 2)) + np.outer(9 * y, [1, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        found = RiskCalibrationCV(MultinomialNB(), target="pooled", cv=2).fit(X, y)
    assert found.converged_
    assert found.cv_results_.target_weight.min() == found.target_weight_ == pytest.approx(0.1)


def test_parameters_that_outnumber_rows_and_classes_of_few_rows_are_judged_by_folds():
    """Leave-one-out says of a class of two rows what the other one, and the target, make of it."""
    X, y = load_iris(return_X_y=True)
    assert RiskCalibrationCV(GaussianNB()).fit(X[:102], y[:102]).validation_ == "5 folds"
    X, y = few_rows_of_noise()
    assert RiskCalibrationCV(QDA(), target_weights=[30.0]).fit(X[:200], y[:200]).validation_ == "5 folds"
    assert RiskCalibrationCV(LDA()).fit(X[:200], y[:200]).validation_ == "approximate leave-one-out"
    with pytest.warns(UserWarning, match="231 parameters of the log odds outnumber 200 rows: take RiskCalibrationCV"):
        RiskCalibration(QDA()).fit(X[:200], y[:200])


def test_searches_of_folds_take_states_that_no_row_shows():
    """Their natural parameters, −∞, are nowhere apart."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (60, 3)), rng.integers(0, 2, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        losses = [RiskCalibrationCV(CategoricalNB(n_states=n), cv=5).fit(X, y).cv_results_.log_loss for n in (3, 4)]
    assert_allclose(*losses, atol=1e-4)


def test_what_does_no_better_than_class_frequencies_says_so():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(90, 3)), rng.integers(0, 2, 90)
    for model in RiskCalibrationCV(GaussianNB()), RiskCalibration(GaussianNB()):
        with pytest.warns(UserWarning, match=r"do not show .* class frequencies alone: log-loss \d\.\d+ with it"):
            model.fit(X, y)


@pytest.mark.parametrize(
    ("name", "target"), of_each_family(*((name, "nested" if name in NETWORKS else "pooled") for name in ML))
)
def test_what_the_sentence_takes_rows_to_gain_is_what_leave_one_out_says(name, target, monkeypatch):
    path, _, y = newton(name, target)
    found = path.follow(3.0)
    before, after = (-log_P[range(len(y)), y] for log_P in (kept(path), path.left_out()[0]))
    gained = left_out.losses_left_out(found.point, target) - before
    assert gained.mean() == pytest.approx((after - before).mean(), rel=0.1)
    monkeypatch.setattr(left_out, "MOST_SCORES_LEFT_OUT", len(y))
    few = left_out.losses_left_out(found.point, target) - before
    assert few.mean() == pytest.approx(gained.mean(), rel=0.5)


@pytest.mark.parametrize(
    ("name", "largest", "kind", "r"),
    [
        *((name, 1500, Curvature, 3) for name in ML if name not in ("QDA", *NETWORKS)),
        *((name, 0, Curvature, r) for r in (2, 3) for name in GAUSSIAN),
        *(("QDA", 1500, Woodbury, r) for r in (2, 3)),
        ("LDA", 10, WoodburyByDifferences, 3),
    ],
)
def test_covariances_of_scores_are_those_of_the_curvature(name, largest, kind, r, monkeypatch):
    """By the part of it that scores need, of all coordinates or each class: S_iᵀ H⁻¹ S_i, as whole systems give it."""
    monkeypatch.setattr("rcpkg.calibration.conditional.MOST_PARAMETERS", largest)
    X, y = rows_for(name)
    y = y % r
    F, index = TargetPath.from_estimator(clone(ML[name]).fit(X, y), "pooled", X[:12], y[:12]).conditional, [0, 3, 7]
    point, features, free = F.evaluate(None), F.form.rows.dense(index), F.data.free
    assert type(point.curvature) is kind
    contrasts = (np.eye(r)[1:] - np.eye(r)[0])[:, r - free :]  # what classes have in common is left open
    for A, row in zip(left_out.covariances_of_scores(point, features, index), features.T):
        S = np.zeros((len(point.z), free))
        S[F.of_scores] = np.kron(np.eye(free), row[:, None])
        found, expected = (contrasts @ each @ contrasts.T for each in (A, S.T @ point.curvature.solve(S)))
        assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_what_is_worse_than_its_closed_form_says_so():
    with pytest.warns(UserWarning, match="speak against calibration: log-loss .* RiskCalibrationCV"):
        RiskCalibration(GaussianNB(), target_weight=1e-3).fit(*drawn_by_the_model(60))


@pytest.mark.slow
def test_folds_on_several_processes_give_the_same():
    X, y = load_iris(return_X_y=True)
    one, two = (RiskCalibrationCV(LDA(), target_weights=[0.3, 3.0], cv=3, n_jobs=n).fit(X, y) for n in (None, 2))
    assert_allclose(one.cv_results_.log_loss, two.cv_results_.log_loss, rtol=1e-6)


@pytest.mark.parametrize("scoring", [*slow("roc_auc", "neg_brier_score"), lambda model, X, y: model.score(X, y)])
def test_a_scorer_is_what_the_best_has_most_of(scoring):
    """The mean over folds of what it gives the learner of each weight, and the closed form."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y, weights, folds = X[::3, :5], y[::3], [0.1, 1.0, 10.0], StratifiedKFold(3)
    found = RiskCalibrationCV(GaussianNB(), target="pooled", target_weights=weights, cv=folds, scoring=scoring).fit(
        X, y
    )
    learners = [RiskCalibration(GaussianNB(), target="pooled", target_weight=b) for b in weights]
    scorer = scoring if callable(scoring) else get_scorer(scoring)
    expected = [
        np.mean([scorer(clone(each).fit(X[train], y[train]), X[held], y[held]) for train, held in folds.split(X, y)])
        for each in (*learners, GaussianNB())
    ]
    assert_allclose(found.cv_results_.score, expected, atol=1e-3)
    best = found.cv_results_[found.cv_results_.score == found.cv_results_.score.max()]
    assert_allclose(found.target_weight_, best.target_weight[best.log_loss.idxmin()])


def test_a_scorer_has_five_folds_in_the_place_of_leave_one_out():
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(UserWarning, match="scoring='roc_auc' judges folds; 5 folds take its place"):
        found = RiskCalibrationCV(GaussianNB(), cv="loo", target_weights=[1.0, 10.0], scoring="roc_auc").fit(
            X[:, :3], y
        )
    assert found.validation_ == "5 folds"


# The closed form as a candidate ---------------------------------------------------------------------------------------


def drawn_by_the_model(n):
    """Rows of a Gaussian naive Bayes model, which calibration can only make worse."""
    rng = np.random.default_rng(3)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 4)) * 2.0 ** y[:, None] + rng.normal(size=(3, 4))[y], y


@pytest.mark.parametrize("cv", ["loo", 3])
def test_the_closed_form_is_chosen_where_it_does_best(cv):
    X, y = drawn_by_the_model(90)
    found = RiskCalibrationCV(GaussianNB(), target="pooled", target_weights=WEIGHTS, cv=cv).fit(X, y)
    results = found.cv_results_
    assert np.isnan(results.target_weight.iloc[-1]) and results.log_loss.idxmin() == len(results) - 1
    assert np.isnan(found.target_weight_) and found.converged_
    assert (found.stop_reason_, found.n_iter_) == ("closed_form", 0)
    closed = GaussianNB().fit(X, y)
    assert_allclose(found.predict_joint_log_proba(X), closed.predict_joint_log_proba(X))
    if cv == "loo":  # fewer rows than blocks: one at a time
        left_out = [
            GaussianNB().fit(np.delete(X, i, axis=0), np.delete(y, i)).predict_log_proba(X[[i]])[0, y[i]]
            for i in range(len(y))
        ]
        assert results.log_loss.iloc[-1] == pytest.approx(-np.mean(left_out), rel=1e-9)
    settings = {"target": "pooled", "target_weights": WEIGHTS, "cv": cv, "closed_form": False}
    without = RiskCalibrationCV(GaussianNB(), **settings).fit(X, y)
    assert_allclose(without.cv_results_.log_loss, results.log_loss.iloc[:-1])
    assert without.target_weight_ == results.target_weight[results.log_loss.iloc[:-1].idxmin()]


def test_a_closed_form_with_an_infinite_loss_is_not_chosen():
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [1, 2]] * 4 + [[0, 0]])
    y = np.append(np.array([0, 1, 0, 1, 0, 1] * 4), 1)
    found = RiskCalibrationCV(CategoricalNB(), target_weights=[1.0, 3.0, 10.0], cv="loo").fit(X, y)
    assert found.cv_results_.log_loss.iloc[-1] == np.inf and np.isfinite(found.target_weight_)


# What a splitter may ask for ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [RiskCalibrationCV(LDA()), RiskCalibrationCV(LDA(), cv="loo"), BDA7()])
def test_leave_one_out_refuses_groups(model):
    """They were ignored without a word, and copies of a row in training decided for it."""
    X, y = load_wine(return_X_y=True)
    refused("groups need a splitter that keeps them together, such as", model.fit, X, y, groups=np.arange(len(y)) // 2)


@pytest.mark.parametrize("estimator", [QDA(), GaussianNB()])
def test_optima_of_other_targets_and_rows_change_where_a_search_begins_but_not_where_it_ends(estimator):
    X, y = load_iris(return_X_y=True)
    model = clone(estimator).fit(X, y)

    def path(target: str, rows: slice) -> TargetPath:
        return TargetPath.from_estimator(model, target, X[rows], y[rows])

    alone, led, twin = (path(target, np.s_[::2]) for target in ("grand", "grand", "pooled"))
    part = path("grand", np.s_[::3])
    led.other_targets, led.fold_paths = [twin], [part]
    weights = 10.0, 1.0, 1e-3  # the last one all but separates the rows, so that log-odds are loose
    for b in weights:
        for each in (twin, part, alone, led):
            each.follow(b)
    for b in weights:
        P, Q = (each.log_posterior(X, each.finish(b)) for each in (alone, led))
        np.testing.assert_allclose(P, Q, rtol=1e-8, atol=1e-12)
    begun = [each._paths[1.0].history[0]["objective"] for each in (alone, led)]
    assert begun[1] < begun[0]


def test_targets_share_what_their_rows_say():
    """One warning for each part of the rows, however many targets there are; and the paths of their own."""
    rng, y = np.random.default_rng(0), np.repeat([0, 1, 2], 20)
    X = np.column_stack([rng.normal(size=(60, 2)) + y[:, None], y == 2])
    n_warnings = []
    for target in ("pooled", ["pooled", "grand"]):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            RiskCalibrationCV(GaussianNB(), target=target, cv=5).fit(X, y)
        n_warnings.append(sum("constant within each class" in str(each.message) for each in caught))
    assert n_warnings == [6, 6]
    model = CategoricalNB(prior_strength=1.0).fit(rng.integers(3, size=(60, 4)), y)
    rows = rng.integers(3, size=(60, 4)), y
    other = TargetPath.from_estimator(model, "pooled", *rows).towards("grand")
    own = TargetPath.from_estimator(model, "grand", *rows)
    assert_allclose(other.follow(2.0).point.z, own.follow(2.0).point.z, rtol=1e-9, atol=1e-12)
