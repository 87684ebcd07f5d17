"""Kernels by name and of others, and the features that they become."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import kernels as sk
from sklearn.model_selection import KFold, cross_val_score
from sklearn.preprocessing import PolynomialFeatures

from fenchel import KernelRidge, features
from fenchel.kernels import DistanceQuantile, Gaussian, Laplacian, Linear, Matern, Polynomial
from fenchel.learning import Learning
from regression_cases import (
    TOL,
    WEIGHT,
    X,
    Y,
    data,
    everyone,
    uncertainty,
)

# Kernels and features


def minimum(A, B):
    return np.minimum(A[:, :1] + 2.0, B[:, :1].T + 2.0)


KERNELS = {
    "none": None,
    "gaussian": "gaussian",
    "rbf": "rbf",
    "laplacian": "laplacian",
    "matern12": "matern12",
    "matern32": "matern32",
    "matern52": "matern52",
    "polynomial": "polynomial",
    "linear": "linear",
    "median": Gaussian("median"),
    "quantile": Gaussian(DistanceQuantile(0.7)),
    "one width each": Gaussian([0.5, 2.0]),
    "theirs": sk.RBF(0.5),
    "theirs, sum": sk.RBF(0.5) + sk.ConstantKernel(2.0) * sk.Matern(0.5, nu=1.5),
    "ours, composite": 2.0 * Gaussian("median") * Linear() + Matern(1.0) ** 2,
    "mixed": Gaussian("scale") + sk.DotProduct(),
    "polynomial, object": Polynomial(2),
    "callable": minimum,
}


@everyone
@pytest.mark.parametrize("name", KERNELS)
def test_kernels(estimator, name):
    # length scales are learned by one of the estimators, and read off data by the others
    model = estimator(kernel=KERNELS[name], alpha=1e-3, learn=estimator is KernelRidge)
    model.fit(X, Y)
    new_X = data(seed=7)[0]
    gram = model.kernel_(new_X, X[model.support_])
    expected = gram @ model.dual_coef_ @ model.coupling_ + model.offset_
    scale = np.abs(expected).max()
    np.testing.assert_allclose(model.predict(new_X), expected[:, 0], atol=1e-4 * scale)
    assert model.certificate_.relative_gap <= model.tol
    assert model.score(X, Y) > 0.15
    assert "'scale'" not in repr(model.kernel_)
    assert "'median'" not in repr(model.kernel_)


def test_names_are_the_kernels():
    for name, kernel in [
        ("gaussian", Gaussian()),
        ("laplacian", Laplacian()),
        ("matern52", Matern(nu=2.5)),
        ("linear", Linear()),
    ]:
        first = KernelRidge(kernel=name, learn=False).fit(X, Y).predict(X)
        other = KernelRidge(kernel=kernel, learn=False).fit(X, Y)
        np.testing.assert_array_equal(first, other.predict(X))
    theirs = KernelRidge(kernel=sk.RBF(0.5, "fixed"), learn=False).fit(X, Y).predict(X)
    ours = KernelRidge(kernel=Gaussian(0.5), learn=False).fit(X, Y)
    np.testing.assert_allclose(ours.predict(X), theirs)


@everyone
def test_precomputed(estimator):
    kernel = Gaussian(0.7)
    gram = kernel(X)
    model = estimator(kernel="precomputed", alpha=1e-3).fit(gram, Y)
    new_X = data(n=15, seed=8)[0]
    expected = estimator(kernel=kernel, alpha=1e-3).fit(X, Y).predict(new_X)
    bound = 2e-3 * np.std(Y)
    np.testing.assert_allclose(model.predict(kernel(new_X, X)), expected, atol=bound)
    weight = WEIGHT.copy()
    weight[::3] = 0.0
    model = estimator(kernel="precomputed", alpha=1e-3).fit(gram, Y, weight)
    expected = estimator(kernel=kernel, alpha=1e-3).fit(X, Y, weight).predict(new_X)
    np.testing.assert_allclose(model.predict(kernel(new_X, X)), expected, atol=bound)


@everyone
def test_precomputed_in_cross_validation(estimator):
    kernel, folds = Gaussian(0.7), KFold(4)
    given = cross_val_score(estimator(kernel="precomputed", alpha=1e-3), kernel(X), Y, cv=folds)
    computed = cross_val_score(estimator(kernel=kernel, alpha=1e-3), X, Y, cv=folds)
    np.testing.assert_allclose(given, computed, atol=2e-3)
    assert given.mean() > 0.2


FEATURES = {
    "auto": {},
    "cholesky": {"features": "cholesky"},
    "cholesky, rank": {"features": "cholesky", "rank": 40},
    "nystroem": {"features": "nystroem"},
    "nystroem, rank": {"features": "nystroem", "rank": 60},
    "fourier": {"features": "fourier", "rank": 2000},
    "object": {"features": features.PivotedCholesky(tol=1e-8)},
    "object, landmarks": {"features": features.Nystroem(landmarks=X[::2])},
}


@everyone
@pytest.mark.filterwarnings("ignore:the feature map of rank")
@pytest.mark.filterwarnings("ignore:.*leave out a part of the kernel")
@pytest.mark.parametrize("name", FEATURES)
def test_features(estimator, name):
    fixed = {"alpha": 1e-3, "learn": False}
    model = estimator(**FEATURES[name], **fixed).fit(X, Y)
    expected = estimator(**fixed).fit(X, Y).predict(X)
    slack = 0.15 if name == "fourier" else 0.02
    assert np.std(model.predict(X) - expected) <= slack * np.std(Y)
    prediction = model.feature_map_.transform(X) @ model.weights_ + model.offset_
    np.testing.assert_allclose(model.predict(X), prediction[:, 0], rtol=1e-9, atol=1e-12)
    if "rank" in FEATURES[name]:
        assert model.feature_map_.rank_ <= FEATURES[name]["rank"]


@everyone
@pytest.mark.parametrize("kernel", ["laplacian", "matern12", Gaussian(0.02)], ids=repr)
def test_rough_kernels_do_not_depend_on_their_representation(estimator, kernel):
    """Kernels of full rank: whatever "auto" does, as exact as pivoted Cholesky."""
    fixed = {"kernel": kernel, "alpha": 1e-3, "learn": False, "tol": TOL}
    model = estimator(**fixed).fit(X, Y, WEIGHT)
    factored = estimator(**fixed, features="cholesky").fit(X, Y, WEIGHT)
    new_X = data(seed=11)[0]
    bound = uncertainty(model) + uncertainty(factored)
    first, second = (m.predict(new_X) - m.offset_[0] for m in (model, factored))
    np.testing.assert_allclose(first, second, atol=bound)
    assert model.kernel_error_ <= 1e-9
    assert model.certificate_.primal == pytest.approx(
        factored.certificate_.primal,
        abs=model.certificate_.gap + factored.certificate_.gap + 1e-12,
    )


@everyone
def test_explicit_features(estimator):
    spread = PolynomialFeatures(2, include_bias=False)
    model = estimator(features=features.Explicit(spread), alpha=1e-3).fit(X, Y)
    expected = estimator(kernel="linear", alpha=1e-3).fit(spread.fit_transform(X), Y)
    np.testing.assert_allclose(
        model.predict(X), expected.predict(spread.transform(X)), atol=2e-3 * np.std(Y)
    )
    assert model.kernel_error_ == 0.0


@pytest.mark.slow
@everyone
def test_what_is_learned_is_of_the_kernel_that_the_features_are_of(estimator):
    kernel = Gaussian(0.5)
    own = estimator(features=features.Nystroem(kernel=kernel)).fit(X, Y)
    named = estimator(features="nystroem", kernel=kernel).fit(X, Y)
    assert own.kernel_ == named.kernel_ == kernel
    assert own.alpha_ == named.alpha_ == own.learned_.alpha
    explicit = estimator(features=features.Explicit()).fit(X, Y)
    assert explicit.learned_ is None
    assert explicit.kernel_ == Linear()
    model = estimator(features="fourier", rank=2000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert isinstance(model.fit(X, Y).kernel_, Matern)
    assert model.learned_.criterion < model.learned_.history[0]


@everyone
def test_widths_read_off_data_are_those_of_all_rows(estimator):
    """Whether alpha is learned from some of them or given."""
    few = Learning(n_rows=40)
    learned = estimator(kernel=Gaussian("median"), learn=few).fit(X, Y, WEIGHT)
    assert learned.learned_.n_rows == 40
    given = estimator(kernel=Gaussian("median"), alpha=1.0).fit(X, Y, WEIGHT)
    assert learned.kernel_ == given.kernel_


@everyone
def test_features_are_not_touched(estimator):
    given = features.Nystroem(rank=10)
    before = given.get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator(features=given, kernel="laplacian", learn=False).fit(X, Y)
    assert given.get_params() == before
    assert not hasattr(given, "kernel_")
    assert model.features is given


@everyone
def test_truncation_is_reported_and_warned_about(estimator):
    with pytest.warns(ConvergenceWarning, match=r"5 features leave out a part .*increase rank"):
        model = estimator(kernel="laplacian", rank=5, learn=False).fit(X, Y)
    assert model.kernel_error_ > 1e-3
    residual = model.kernel_(X) - (f := model.feature_map_.transform(X)) @ f.T
    assert model.kernel_error_ == pytest.approx(np.trace(residual) / 80.0, rel=1e-9)
    quiet = estimator(kernel="gaussian", rank=40, learn=False)
    quiet.fit(X, Y)  # warnings are errors here
    assert 0.0 < quiet.kernel_error_ <= 1e-3
