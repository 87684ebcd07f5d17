"""How learning ends: by a callback, by time, or where there is nothing to learn from."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.kernels import Gaussian
from fenchel.learning import Data, Learning, learn, unit_of_strength
from fenchel.learning.units import size_of_functions
from fenchel.losses import Squared

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, (80, 3))
Y = np.sin(3.0 * X[:, 0]) + 0.2 * RNG.standard_normal(80)
ALL = [KernelRidge(), SVR(), QuantileRegressor([0.2, 0.8]), ExpectileRegressor(0.3)]
every = pytest.mark.parametrize("estimator", ALL, ids=lambda each: type(each).__name__)


def fitted(estimator, **parameters):
    """A fit whose warnings are no news."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return type(estimator)(**{**estimator.get_params(deep=False), **parameters}).fit(X, Y)


@pytest.mark.slow
@every
@pytest.mark.parametrize("limit", [1, 4])
def test_a_callback_ends_learning_with_the_best_so_far(estimator, limit):
    seen = []

    def enough(progress):
        seen.append(progress)
        return "it is late" if len(seen) == limit else None

    learned = fitted(estimator, callback=enough).learned_
    full = fitted(estimator).learned_
    assert len(full.history) > limit
    assert learned.history == full.history[:limit]
    assert [progress.primal for progress in seen] == learned.history
    assert all(np.isnan(progress.dual) for progress in seen)
    assert learned.criterion in learned.history
    assert learned.criterion <= learned.history[0]
    assert learned.message == f"stopped after {limit} evaluations: it is late"
    assert "stopped" not in full.message


@every
def test_the_model_is_that_of_what_was_learned(estimator):
    calls = []
    model = fitted(estimator, callback=lambda progress: calls.append(progress) or len(calls) == 3)
    assert model.kernel_ == model.learned_.kernel
    assert model.alpha_ == model.learned_.alpha
    same = fitted(model.with_learned(), callback=None)
    assert same.learned_ is None
    slack = 1e-9 * same.certificate_.unit
    assert model.certificate_.primal >= same.certificate_.dual - slack
    assert model.certificate_.dual <= same.certificate_.primal + slack
    assert np.ptp(model.predict(X)) > 0.0


def test_a_callback_ends_learning_among_the_alphas_of_what_gains_little():
    noise = np.random.default_rng(3).normal(size=60)

    def learned(limit):
        calls = []
        stop = KernelRidge(callback=lambda progress: calls.append(progress) or len(calls) == limit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return stop.fit(X[:60], noise).learned_

    full = learned(-1)
    assert full.criterion in full.history[-5:]
    limit = len(full.history) - 3
    assert learned(limit).history == full.history[:limit]


@every
def test_time_ends_learning_after_one_evaluation(estimator):
    model = fitted(estimator, max_time=1e-9)
    assert len(model.learned_.history) == 1
    assert "max_time" in model.learned_.message
    assert np.isfinite(model.certificate_.gap)
    assert model.predict(X).shape[0] == 80


def test_alpha_is_scaled_from_the_rows_of_the_best_evaluation():
    """Those of the first descent, two folds of 350 rows, if it is ended there."""
    rng = np.random.default_rng(1)
    rows = rng.uniform(-1.0, 1.0, (600, 2))
    data = Data(rows, np.sin(3.0 * rows[:, :1]), np.ones(600), Squared(), np.eye(1), True)
    learned = learn(data, [Gaussian(0.5)], None, Learning(), lambda progress: True)
    assert (len(learned.history), learned.n_rows) == (1, 350)
    few = data.rows(1000).first(350, 2)
    unit = unit_of_strength(Squared(), data.targets, data.weight)
    unit *= size_of_functions(Gaussian(0.5), data.X, few.X, True)
    np.testing.assert_allclose(learned.alpha, 1e-3 * unit * (175 / 600) ** 0.6, rtol=1e-12)


@pytest.mark.slow
def test_half_of_the_time_is_for_learning():
    """Each evaluation takes a tenth of a second, and there is a second for all."""
    model = fitted(KernelRidge(), callback=lambda progress: time.sleep(0.1), max_time=1.0)
    assert model.learned_.message.endswith(": half of max_time was used")
    assert len(model.learned_.history) <= 6 < len(fitted(KernelRidge()).learned_.history)
    assert model.status_.converged


@every
def test_an_interrupt_of_learning_leaves_the_estimator_unfitted(estimator):
    def stop(progress):
        assert np.isnan(progress.dual)
        raise KeyboardInterrupt

    model = type(estimator)(**{**estimator.get_params(deep=False), "callback": stop})
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


@pytest.mark.parametrize(
    ("rows", "targets"), [(X[:2], Y[:2]), (X, np.ones(80))], ids=["few rows", "constant"]
)
def test_nothing_to_learn_from(rows, targets):
    model = KernelRidge().fit(rows, targets)
    assert model.learned_ is None
    assert model.alpha_ > 0.0


@pytest.mark.parametrize("kernel", [None, "matern32"])
@pytest.mark.parametrize("features", ["auto", "fourier"])
def test_of_constant_columns_no_length_scale_is_learned(kernel, features):
    """With alpha given there is no free number at all: SciPy takes no empty bounds."""
    model = KernelRidge(alpha=0.1, kernel=kernel, features=features, rank=8)
    model.fit(np.full((80, 2), 3.0), Y)
    np.testing.assert_allclose(model.predict([[3.0, 3.0]]), Y.mean(), rtol=1e-6)


@pytest.mark.parametrize(
    ("field", "value", "kind", "sentence"),
    [
        ("n_rows", 0, ValueError, "n_rows must be an integer >= 1 or None, got 0"),
        ("n_folds", 1, ValueError, "n_folds must be an integer >= 2 or None, got 1"),
        ("n_folds", 2.0, TypeError, "n_folds must be an integer >= 2 or None, got 2.0"),
        ("max_evaluations", -1, ValueError, "max_evaluations must be an integer >= 1, got -1"),
        ("tol", 0.0, ValueError, "tol must be a finite number > 0, got 0.0"),
        ("prior", -1.0, ValueError, "prior must be a finite number >= 0, got -1.0"),
        ("share_scales", 1, TypeError, "share_scales must be True or False, got 1"),
    ],
)
def test_fields_that_are_not_allowed(field, value, kind, sentence):
    with pytest.raises(kind) as caught:
        Learning(**{field: value})
    assert str(caught.value) == sentence


@pytest.mark.parametrize("value", ["yes", None, 1, Learning])
def test_learn_is_a_boolean_or_a_learning(value):
    with pytest.raises(TypeError, match="learn must be True, False or a Learning, got"):
        KernelRidge(learn=value).fit(X, Y)


# of such an alpha the criterion is rounding alone, and so may the fit be, which then says so
@pytest.mark.filterwarnings("ignore:solved by singular values")
def test_a_given_alpha_is_the_one_that_is_fitted():
    model = KernelRidge(alpha=1e-300, kernel=Gaussian()).fit(1e-3 * X, Y)
    assert model.alpha_ == 1e-300
