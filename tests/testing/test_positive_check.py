"""The check of non-negative models accepts those of the library and finds wrong ones."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from fenchel import positive
from fenchel.features import Explicit, Nystroem, PivotedCholesky, RandomFourier
from fenchel.kernels import Gaussian, Laplacian, Matern, Polynomial
from fenchel.positive import DensityEstimator, NonNegativeRegressor, PSDModel
from fenchel.testing import check_positive_model


def fitted(kind, X):
    """The PSD model of an estimator of the room."""
    if kind is DensityEstimator:
        return DensityEstimator().fit(X).model_
    return NonNegativeRegressor().fit(X, 1.0 + np.sin(X[:, 0])).model_


def random_model(kernel, kind=PivotedCholesky, d=1, model=PSDModel):
    random = np.random.default_rng(0)
    features = kind(kernel).fit(random.uniform(-1.0, 1.0, (8, d)))
    return model(features, random.standard_normal((features.rank_, 2)))


CLOSED = [Gaussian(0.7), Laplacian(0.8), Polynomial(2)]


@pytest.mark.parametrize("kernel", [*CLOSED, Matern(0.9, 2.5)], ids=repr)
def test_models_of_the_line_pass(kernel):
    check_positive_model(random_model(kernel))


@pytest.mark.parametrize("kernel", CLOSED, ids=repr)
def test_models_of_the_plane_pass(kernel):
    check_positive_model(random_model(kernel, d=2))


@pytest.mark.slow
def test_models_of_other_features_pass():
    check_positive_model(random_model(Gaussian(0.7), Nystroem))
    check_positive_model(random_model(Gaussian(0.7), RandomFourier), [[-1.0], [1.0]])
    explicit = PSDModel(Explicit().fit(np.eye(2)), np.array([[1.0], [2.0]]))
    check_positive_model(explicit, np.eye(2))


@pytest.mark.slow
def test_every_estimator_with_one_function_passes():
    X = np.random.default_rng(0).standard_normal((60, 2))
    kinds = [
        each
        for name, each in vars(positive).items()
        if name in positive.__all__ and inspect.isclass(each) and hasattr(each, "fit")
    ]
    single = [each for each in kinds if "model_ : PSDModel" in inspect.getdoc(each)]
    assert DensityEstimator in single
    for kind in single:
        check_positive_model(fitted(kind, X))


class Shifted(PSDModel):
    def __call__(self, X):
        return super().__call__(X) - 1e-3


class Scaled(PSDModel):
    def __call__(self, X):
        return 1.001 * super().__call__(X)


class Column(PSDModel):
    def __call__(self, X):
        return super().__call__(X)[:, None]


class Steep(PSDModel):
    def gradient(self, X):
        return 1.01 * super().gradient(X)


class Indefinite(PSDModel):
    @property
    def matrix_(self):
        return super().matrix_ - 0.01 * np.eye(len(self.factor_))


class Full(PSDModel):
    @property
    def rank_(self):
        return super().rank_ + 1


class Heavy(PSDModel):
    def integral_with_error(self, domain=None):
        found = super().integral_with_error(domain)
        return found._replace(value=1.001 * found.value)


class Leaking(PSDModel):
    def integral_with_error(self, domain=None):
        found = super().integral_with_error(domain)
        narrow = np.ptp(domain, axis=0)[0] < 1.5
        return found._replace(value=(0.999 if narrow else 1.0) * found.value)


class Doubled(PSDModel):
    def __add__(self, other):
        return PSDModel(self.feature_map_, self.factor_)


class Moody(PSDModel):
    calls = 0

    def __call__(self, X):
        self.calls += 1
        return super().__call__(X) * (1.0 if self.calls < 10 else 1.0 + 1e-12)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (Shifted, r"the value at \[.*\] is -.*, and must be >= 0"),
        (Scaled, "must be φ"),
        (Column, r"f\(X\) must have shape"),
        (Steep, "gradient, coordinate 0"),
        (Indefinite, "matrix_ has the eigenvalue -"),
        (Full, "rank_ must be the number of eigenvalues .* 2, got 3"),
        (Heavy, "a Sobol rule gives"),
        (Leaking, "two halves add up"),
        (Doubled, r"f \+ f must be twice f"),
        (Moody, "the same each time"),
    ],
)
def test_wrong_models_are_found(kind, sentence):
    with pytest.raises(AssertionError, match=f"{kind.__name__}: .*{sentence}"):
        check_positive_model(random_model(Gaussian(0.7), model=kind))


def test_region_is_asked_for_where_there_are_no_landmarks():
    with pytest.raises(AssertionError, match="X must be given"):
        check_positive_model(random_model(Gaussian(0.7), RandomFourier))
