"""Rows of weight zero, infinite deviations, functions that are zero, and frames from inside."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context

from fenchel.kernels import Gaussian
from fenchel.positive import (
    ConeRegressor,
    DensityEstimator,
    HeteroscedasticRegressor,
    NonCrossingQuantileRegressor,
    NonNegativeRegressor,
)

pytestmark = pytest.mark.filterwarnings("ignore:the feature map of rank")

X = np.random.default_rng(0).normal(size=(40, 2))
Y = np.abs(X[:, 0])
GIVEN = {"kernel": Gaussian(1.0), "learn": False}


def spread():
    """Far from the rows its deviation is infinite."""
    rows = np.linspace(0.0, 1.0, 40)[:, None]
    given = {"kernel": Gaussian(0.2), "learn": False, "alpha": 1e-3, "max_std": np.inf}
    return HeteroscedasticRegressor(**given).fit(rows, np.sin(6.0 * rows[:, 0]))


@pytest.mark.parametrize(
    "model",
    [
        DensityEstimator(**GIVEN),
        DensityEstimator(features="nystroem", rank=10, **GIVEN),
        NonNegativeRegressor(**GIVEN),
        HeteroscedasticRegressor(**GIVEN),
        NonCrossingQuantileRegressor([0.1, 0.9], **GIVEN),
    ],
    ids=lambda model: f"{type(model).__name__}-{model.features}",
)
def test_features_inside_are_arrays_whatever_transformers_return(model):
    def fitted():
        if isinstance(model, DensityEstimator):
            return model.fit(X).model_(X)
        return np.asarray(model.fit(X, Y).predict(X))

    expected = fitted()
    with config_context(transform_output="pandas"):
        np.testing.assert_array_equal(fitted(), expected)


def test_rows_of_weight_zero_have_no_part_in_scores():
    density = DensityEstimator(kernel=Gaussian(0.7), learn=False, support=(-5.0, 5.0))
    weight = np.append(np.ones(40), 0.0)
    density.fit(np.append(X[:, :1], [[9.0]], axis=0), sample_weight=weight)
    found = density.score([[0.0], [9.0]], sample_weight=[1.0, 0.0])
    assert found == pytest.approx(density.score([[0.0]]), rel=1e-12)
    model, both = spread(), ([[0.5], [50.0]], [0.0, 0.0])
    found = model.log_likelihood(*both, [1.0, 0.0])
    assert found == pytest.approx(model.log_likelihood([[0.5]], [0.0]), rel=1e-12)


def test_the_median_is_the_mean_where_the_deviation_is_infinite():
    model = spread()
    far = [[50.0]]
    assert model.predict(far, return_std=True)[1] == np.inf
    expected = [[-np.inf, model.predict(far)[0], np.inf]]
    np.testing.assert_array_equal(model.predict_quantiles(far, [0.1, 0.5, 0.9]), expected)


@pytest.mark.slow
def test_few_samples_are_drawn_as_many_are():
    density = DensityEstimator(
        features="fourier", rank=30, support=([-4.0, -4.0], [4.0, 4.0]), **GIVEN
    ).fit(X)
    assert density.sample(3, random_state=0).shape == (3, 2)
    assert np.ptp(density.sample(400, random_state=0), axis=0).min() > 1.0


def test_nothing_is_drawn_from_zero():
    density = DensityEstimator(**GIVEN).fit(X)
    with pytest.raises(ValueError, match="sample needs a function that is positive somewhere"):
        (0.0 * density.model_).sample(2)


@pytest.mark.parametrize("coordinates", [0.5, [[0]], "0", [True]])
def test_coordinates_of_a_marginal(coordinates):
    density = DensityEstimator(**GIVEN).fit(X)
    with pytest.raises(ValueError, match="coordinates must be distinct integers from 0 to 1"):
        density.model_.marginal(coordinates)


def test_learned_widths_do_not_depend_on_where_zero_is():
    near, far = (DensityEstimator().fit(X * [1.0, 3.0] + zero) for zero in (0.0, 1e7))
    np.testing.assert_allclose(
        near.kernel_.length_scale, far.kernel_.length_scale, rtol=1e-5, atol=0.0
    )


@pytest.mark.parametrize("size", [1e-6, 3.0, 1e6])
@pytest.mark.parametrize("loss", ["squared", "huber", "poisson", "epsilon_insensitive"])
def test_constant_targets_are_predicted_in_all_units(loss, size):
    X = np.random.default_rng(0).normal(size=(40, 2))
    predicted = NonNegativeRegressor(loss).fit(X, np.full(40, size)).predict(X)
    np.testing.assert_allclose(predicted, size, rtol=2e-3)


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_so_are_constant_targets_in_a_cone(size):
    X = np.random.default_rng(0).normal(size=(40, 2))
    Y = size * np.tile([1.0, 2.0, 3.0], (40, 1))
    for loss in ("huber", "squared_epsilon_insensitive"):
        predicted = ConeRegressor("monotone", loss=loss).fit(X, Y).predict(X)
        np.testing.assert_allclose(predicted, Y, rtol=0.02)
