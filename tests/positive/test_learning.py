"""What models of positive functions learn: the kernel of a linear model, and alpha by it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import ConstantKernel

from fenchel import KernelRidge, QuantileRegressor
from fenchel.features import PivotedCholesky
from fenchel.kernels import Gaussian, is_open
from fenchel.learning import Learning
from fenchel.model_selection import PathSearchCV
from fenchel.positive import (
    ConeRegressor,
    HeteroscedasticRegressor,
    NonCrossingQuantileRegressor,
    NonNegativeRegressor,
)

RNG = np.random.default_rng(0)
LEVELS = (0.2, 0.5, 0.9)
SHORT = Learning(max_evaluations=5, n_folds=2)
X = RNG.uniform(-1.0, 1.0, (90, 3)) * [1.0, 8.0, 0.25]


def truth(rows):
    """A function of the first column; the others are idle."""
    return 2.0 + np.sin(4.0 * rows[:, 0])


NEW = RNG.uniform(-1.0, 1.0, (300, 3)) * [1.0, 8.0, 0.25]
Y = truth(X) + 0.3 * RNG.standard_normal(90)
MEAN, SPREAD = Y.mean(), Y.std()
MEDIAN = np.sort(Y)[44]  # the least minimizer
DISTANCE = np.abs(Y - MEDIAN).mean()
ALL = [
    NonNegativeRegressor(learn=SHORT),
    NonNegativeRegressor("poisson", learn=SHORT),
    HeteroscedasticRegressor(learn=SHORT),
    NonCrossingQuantileRegressor(LEVELS, learn=SHORT, tol=1e-4),
    ConeRegressor(learn=SHORT),
]
every = pytest.mark.parametrize("estimator", ALL, ids=lambda each: type(each).__name__)
LEVEL = Gaussian("learned") + ConstantKernel(10.0, "fixed")
HIGHER = Gaussian("learned") + ConstantKernel(100.0, "fixed")
# the linear model of each, of the same standardized targets
LINEAR = [
    (ALL[0], KernelRidge(kernel=LEVEL), Y / np.abs(Y).mean(), 6.0, 1e-4),
    (ALL[1], KernelRidge(kernel=LEVEL), Y / np.abs(Y).mean(), 6.0, 1e-4),
    (ALL[2], KernelRidge(kernel=HIGHER), (Y - MEAN) / SPREAD, None, 1e-4),
    (
        ALL[3],
        QuantileRegressor(LEVELS),
        (Y - MEDIAN) / DISTANCE,
        1.0,
        1e-3,
    ),
    (ALL[4], KernelRidge(kernel=Gaussian()), Y / np.sqrt(np.mean(Y**2)), 1.0, 1e-4),
]
linear = pytest.mark.parametrize(
    ("estimator", "model", "targets", "share", "alpha"), LINEAR, ids=lambda each: ""
)


def scales_of(kernel):
    """The length scales, of a kernel beside a constant and on ranks too."""
    kernel = getattr(kernel, "k1", kernel)
    return getattr(kernel, "kernel", kernel).length_scale


def given(estimator, **parameters):
    return type(estimator)(**{**estimator.get_params(deep=False), **parameters})


@linear
def test_the_kernel_is_that_of_the_linear_model(estimator, model, targets, share, alpha):
    model = given(model, learn=SHORT, alpha=alpha / (share or 1.0))
    scales = scales_of(model.fit(X, targets).kernel_)
    fitted = given(estimator, alpha=alpha).fit(X, Y)
    np.testing.assert_allclose(scales_of(fitted.kernel_), scales, rtol=1e-9)
    assert fitted.alpha_ == alpha
    assert scales[1] > 8.0 * 1.5 * scales[0]


@pytest.mark.slow
@linear
def test_alpha_is_a_multiple_of_that_of_the_linear_model(estimator, model, targets, share, alpha):
    model = given(model, learn=SHORT).fit(X, targets)
    fitted = given(estimator, alpha=None).fit(X, Y)
    assert fitted.alpha_ == fitted.learned_.alpha
    share = model.learned_.criterion if share is None else share  # of the variance of y
    assert fitted.alpha_ == pytest.approx(share * model.alpha_, rel=1e-9)
    assert scales_of(fitted.kernel_) == pytest.approx(scales_of(model.kernel_))
    fixed = given(estimator, alpha=None, kernel=Gaussian(3.0)).fit(X, Y)
    assert fixed.kernel_.length_scale == 3.0
    assert fixed.learned_.alpha == fixed.alpha_ != fitted.alpha_


@every
def test_nothing_is_learned_where_nobody_asks(estimator):
    fitted = given(estimator, learn=False, alpha=None).fit(X, Y)
    assert fitted.learned_ is None
    same = given(estimator, learn=False, alpha=estimator.unlearned_alpha).fit(X, Y)
    assert fitted.alpha_ == same.alpha_
    np.testing.assert_array_equal(fitted.predict(NEW), same.predict(NEW))
    fixed = given(estimator, kernel=Gaussian(3.0), alpha=1e-3).fit(X, Y)
    assert fixed.learned_ is None
    gram = given(estimator, kernel="precomputed", alpha=None).fit(Gaussian([1.0, 8.0, 1.0])(X), Y)
    assert gram.learned_ is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(dict.fromkeys(type(each) for each in ALL)))
def test_kernel_and_alpha_are_learned_by_default(kind):
    model = kind().fit(X, Y)
    assert model.kernel_ == model.learned_.kernel
    assert model.alpha_ == model.learned_.alpha


@pytest.mark.slow
@every
def test_the_fit_is_that_of_what_was_learned(estimator):
    model = given(estimator, alpha=None).fit(X, Y)
    assert model.kernel_ == model.learned_.kernel
    assert not is_open(model.kernel_)
    same = model.with_learned().fit(X, Y)
    assert same.learned_ is None
    assert same.alpha_ == model.alpha_
    np.testing.assert_array_equal(same.predict(NEW), model.predict(NEW))


@pytest.mark.slow
@every
def test_repetitions_order_and_units_do_not_matter(estimator):
    counts, order = RNG.integers(0, 3, 90), RNG.permutation(90)
    times = np.repeat(np.arange(90), counts)
    one = given(estimator, alpha=None).fit(X[order], Y[order], sample_weight=counts[order])
    other = given(estimator, alpha=None).fit(8.0 * X[times], 4.0 * Y[times])
    np.testing.assert_allclose(one.kernel_(X), other.kernel_(8.0 * X), rtol=1e-9)
    assert one.alpha_ == pytest.approx(other.alpha_, rel=1e-6)


@pytest.mark.parametrize("estimator", [ALL[0], ALL[1], ALL[2], ALL[4]], ids=str)
def test_idle_columns_cost_less(estimator):
    plain = given(estimator, learn=False)
    errors = [np.mean((m.fit(X, Y).predict(NEW) - truth(NEW)) ** 2) for m in (estimator, plain)]
    assert errors[0] < 0.7 * errors[1]


def test_robust_losses_judge_themselves():
    spoiled = Y.copy()
    spoiled[::15] += 60.0
    model = NonNegativeRegressor("huber", kappa=0.5, learn=SHORT).fit(X, spoiled)
    squared = NonNegativeRegressor(learn=SHORT).fit(X, spoiled)
    assert model.kernel_ != squared.kernel_
    error, other = (np.mean((m.predict(NEW) - truth(NEW)) ** 2) for m in (model, squared))
    assert error < 0.1 * other


@every
def test_one_clock_for_learning_and_the_fit(estimator):
    seen = []
    model = given(estimator, callback=lambda progress: seen.append(progress) or None).fit(X, Y)
    learning = [progress for progress in seen if np.isnan(progress.dual)]
    assert [progress.primal for progress in learning] == model.learned_.history
    assert seen[: len(learning)] == learning
    assert len(seen) > len(learning)
    with pytest.warns(ConvergenceWarning, match="the callback returned a true value"):
        ended = given(estimator, callback=lambda progress: np.isnan(progress.dual)).fit(X, Y)
    assert len(ended.learned_.history) == 1


def test_targets_are_refused_before_learning():
    calls = []
    model = NonNegativeRegressor("poisson", learn=True, callback=calls.append)
    with pytest.raises(ValueError, match="y must be >= 0 with loss='poisson'"):
        model.fit(X, np.where(np.arange(90) == 80, -1.0, np.abs(Y)))
    assert not calls


def test_searches_learn_nothing():
    search = PathSearchCV(NonNegativeRegressor(learn=True), {"alpha": [1e-2, 1e-3]}, cv=2)
    best = search.fit(X, Y).best_estimator_
    assert best.kernel_.length_scale == pytest.approx(
        NonNegativeRegressor(learn=False).fit(X, Y).kernel_.length_scale
    )


@pytest.mark.parametrize("size", [2.0**-8, 2.0**8])
@pytest.mark.parametrize("loss", ["squared", "absolute", "poisson"])
def test_the_size_of_a_kernel_is_one_of_alpha(loss, size):
    """Non-negative functions are in the space of the squared kernel."""
    found = []
    for times in (1.0, size):
        kernel = ConstantKernel(times, "fixed") * Gaussian()
        model = NonNegativeRegressor(loss, kernel=kernel, trace_penalty=0.0, learn=SHORT)
        found.append((model.fit(X, Y).alpha_ / times**2, model.predict(NEW)))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-9)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-3)


def test_a_kernel_may_be_given_by_features():
    kernel = ConstantKernel(0.01, "fixed") * Gaussian([0.5, 4.0, 0.1])
    found = [
        NonNegativeRegressor(**given, learn=SHORT).fit(X, Y).alpha_
        for given in ({"kernel": kernel}, {"features": PivotedCholesky(kernel)})
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-6)
