import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.gaussian_process import kernels as sk
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures

from contract_cases import with_checks
from fenchel import DensityEstimator, KernelRidge, QuantileRegressor
from fenchel.features import (
    FEATURE_MAPS,
    Explicit,
    KernelRowLimits,
    KernelRows,
    Nystroem,
    PivotedCholesky,
    RandomFourier,
    as_feature_map,
    base,
    fit_feature_map,
)
from fenchel.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial, Precomputed

MAPS = [*(cls() for cls in FEATURE_MAPS.values()), Explicit()]  # a new map is tested at once


def rows(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@with_checks(*MAPS)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("phi", MAPS, ids=repr)
def test_contract(phi, monkeypatch):
    X = rows(40, 3)
    phi = clone(phi)
    features = phi.fit_transform(X)
    assert features.shape == (40, phi.rank_)
    np.testing.assert_allclose(clone(phi).fit(X).transform(X), features, atol=1e-8)
    assert phi.get_feature_names_out().shape == (phi.rank_,)
    assert phi.kernel_(X).shape == (40, 40)  # resolved
    monkeypatch.setattr(base, "_CHUNK_VALUES", 7 * phi.rank_)  # six chunks
    np.testing.assert_allclose(phi.transform(X), features, atol=1e-8)


def test_arrays_whatever_is_set():
    with config_context(transform_output="pandas"):
        assert not isinstance(PivotedCholesky(Linear()).fit_transform(rows(9, 2)), np.ndarray)
        made = PivotedCholesky(Linear()).to_arrays().fit_transform(rows(9, 2))
    assert isinstance(made, np.ndarray)


@pytest.mark.parametrize("phi", [PivotedCholesky(), Nystroem()], ids=repr)
@pytest.mark.parametrize("kernel", ["precomputed", Precomputed()])
def test_precomputed_is_pairwise(phi, kernel):
    assert clone(phi).set_params(kernel=kernel).__sklearn_tags__().input_tags.pairwise
    assert not phi.__sklearn_tags__().input_tags.pairwise


@pytest.mark.parametrize("kernel", [Laplacian(1.0), Gaussian(0.5), Matern(2.0, 2.5)])
def test_nystroem_on_all_rows_is_exact(kernel):
    X = rows(60, 3)
    phi = Nystroem(kernel, rank=100)
    features = phi.fit_transform(X)
    np.testing.assert_allclose(features @ features.T, kernel(X), atol=1e-9)
    assert phi.rank_ <= 60
    assert phi.kernel_error_ < 1e-9


def test_nystroem_is_the_projection_on_landmarks():
    X, landmarks = rows(80, 2), rows(15, 2, seed=1)
    kernel = Laplacian(1.0)
    phi = Nystroem(kernel, landmarks=landmarks)
    features = phi.fit_transform(X)
    cross = kernel(X, landmarks)
    truth = cross @ np.linalg.solve(kernel(landmarks), cross.T)
    np.testing.assert_allclose(features @ features.T, truth, atol=1e-12)
    assert phi.kernel_error_ == pytest.approx(1.0 - np.trace(truth) / 80)
    assert 0.01 < phi.kernel_error_ < 0.99
    weights = rows(phi.rank_, 2)
    np.testing.assert_allclose(cross @ phi.coefficients(weights), features @ weights, atol=1e-12)


def test_nystroem_samples_with_a_fixed_seed():
    X = rows(200, 2)
    first, again = Nystroem(rank=20).fit(X), Nystroem(rank=20).fit(X)
    np.testing.assert_array_equal(first.landmarks_, again.landmarks_)
    other = Nystroem(rank=20, random_state=1).fit(X)
    assert not np.array_equal(first.landmarks_, other.landmarks_)
    assert len(np.unique(first.landmarks_, axis=0)) == 20


def test_nystroem_drops_what_rounding_cannot_tell():
    phi = Nystroem(Gaussian(1.0), rank=100)
    features = phi.fit_transform(np.repeat(rows(10, 2), 10, axis=0))
    assert phi.rank_ == 10
    assert np.abs(features).max() <= 1.0 + 1e-6
    nothing = Nystroem("linear").fit_transform(np.zeros((4, 2)))
    np.testing.assert_array_equal(nothing, np.zeros((4, 1)))


def test_nystroem_precomputed():
    X, chosen = rows(50, 2), np.arange(0, 50, 4)
    kernel = Laplacian(1.0)
    given = Nystroem("precomputed", landmarks=chosen).fit(kernel(X))
    evaluated = Nystroem(kernel, landmarks=X[chosen]).fit(X)
    new = rows(5, 2, seed=1)
    np.testing.assert_allclose(
        given.transform(kernel(new, X)), evaluated.transform(new), atol=1e-12
    )
    assert given.kernel_error_ == pytest.approx(evaluated.kernel_error_)
    sampled = Nystroem("precomputed", rank=13).fit(kernel(X))
    assert sampled.rank_ == 13
    with pytest.raises(ValueError, match="positive semi-definite"):
        Nystroem("precomputed").fit(np.eye(10)[::-1].copy())


@pytest.mark.parametrize("landmarks", [[0, 50], [-1], [0.5], [[0]], []])
def test_nystroem_refuses_rows_that_are_not_there(landmarks):
    with pytest.raises(ValueError, match="landmarks must be row indices from 0 to 49, got"):
        Nystroem("precomputed", landmarks=landmarks).fit(np.eye(50))


@pytest.mark.parametrize("landmarks", [np.ones(2), np.ones((3, 1)), np.ones((0, 2))])
def test_nystroem_refuses_landmarks_of_another_shape(landmarks):
    with pytest.raises(ValueError, match="landmarks must be rows with 2 columns"):
        Nystroem(landmarks=landmarks).fit(rows(50, 2))


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(1.5),
        Gaussian([1.0, 3.0]),
        Laplacian(1.5),
        Matern(1.5, 0.5),
        Matern([1.0, 3.0], 1.5),
        Matern(1.5, 2.5),
        sk.RBF(1.5),
        sk.Matern(1.5, nu=1.5),
        sk.Matern(1.5, nu=np.inf),
    ],
    ids=repr,
)
def test_fourier_converges(kernel):
    X, new = rows(60, 2), rows(20, 2, seed=1)
    errors = []
    for rank in (200, 20_000):
        phi = RandomFourier(kernel, rank=rank)
        features = phi.fit_transform(X)
        K = kernel(X)
        error = np.linalg.norm(K - features @ features.T) / np.linalg.norm(K)
        assert phi.kernel_error_ == pytest.approx(error)  # few rows: all of them are looked at
        errors.append(error)
        # the diagonal is exact
        np.testing.assert_allclose((features**2).sum(axis=1), 1.0)
    assert errors[1] < 0.025
    assert errors[1] < errors[0] / 4  # 10 expected
    np.testing.assert_allclose(phi.transform(new) @ features.T, kernel(new, X), atol=0.05)


class _High(Gaussian):
    """A kernel with k(x, x) = 4, and the frequencies of a Gaussian one."""

    def _evaluate(self, X, Y):
        return 4.0 * super()._evaluate(X, Y)

    def diag(self, X):
        return np.full(len(X), 4.0)


def test_fourier_features_of_kernels_whose_diagonal_is_not_one():
    X, new = rows(60, 2), rows(20, 2, seed=1)
    phi = RandomFourier(_High(1.5), rank=20_000)
    features = phi.fit_transform(X)
    assert phi.kernel_error_ < 0.025
    np.testing.assert_allclose((features**2).sum(axis=1), 4.0)
    np.testing.assert_allclose(phi.transform(new) @ features.T, _High(1.5)(new, X), atol=0.2)


def test_fourier_rank_and_seed():
    X = rows(700, 2)
    phi = RandomFourier(rank=31).fit(X)
    assert phi.rank_ == 32
    assert 0.0 < phi.kernel_error_ < 1.0
    np.testing.assert_array_equal(RandomFourier(rank=31).fit(X).frequencies_, phi.frequencies_)
    other = RandomFourier(rank=31, random_state=1).fit(X)
    assert not np.array_equal(other.frequencies_, phi.frequencies_)


@pytest.mark.parametrize(
    "kernel", [Linear(), Polynomial(), "precomputed", Gaussian(1.0) + Laplacian(1.0), np.dot]
)
def test_fourier_refuses_other_kernels(kernel):
    with pytest.raises(ValueError, match="takes a Gaussian, Laplacian or Matern kernel, got"):
        RandomFourier(kernel).fit(np.eye(5))


@pytest.mark.parametrize("phi", [Nystroem(rank=0), RandomFourier(rank=0), Nystroem(rank=1.5)])
def test_bad_rank(phi):
    with pytest.raises((ValueError, TypeError), match="rank must be an integer >= 1, got"):
        phi.fit(rows(5, 1))


def test_explicit_is_the_row_itself_or_what_a_transformer_makes():
    X = rows(20, 3)
    phi = Explicit()
    np.testing.assert_array_equal(phi.fit_transform(X), X)
    assert phi.kernel_ == Linear()
    assert phi.kernel_error_ == 0.0
    transformer = PolynomialFeatures(2)
    phi = Explicit(transformer).fit(X)
    np.testing.assert_array_equal(phi.transform(X), PolynomialFeatures(2).fit_transform(X))
    assert phi.rank_ == 10
    assert not hasattr(transformer, "n_features_in_")  # the given one is not fitted
    sparse = Explicit(OneHotEncoder()).fit_transform([[0.0], [2.0], [0.0]])
    np.testing.assert_array_equal(sparse, [[1, 0], [0, 1], [1, 0]])


def test_explicit_refuses_a_gram_matrix():
    with pytest.raises(ValueError, match="must not be 'precomputed'"):
        Explicit(kernel="precomputed").fit(np.eye(3))


@pytest.mark.parametrize("phi", [RandomFourier(), Explicit()], ids=repr)
def test_coefficients_only_on_landmarks(phi):
    with pytest.raises(NotImplementedError, match="not combinations of kernel values"):
        phi.fit(rows(5, 2)).coefficients(np.ones((2, 1)))


def test_as_feature_map_by_name():
    kernel = Gaussian(2.0)
    for name, cls in [
        ("auto", PivotedCholesky),
        ("cholesky", PivotedCholesky),
        ("nystroem", Nystroem),
        ("fourier", RandomFourier),
    ]:
        phi = as_feature_map(name, kernel, 17, 3, 100, 2)
        assert type(phi) is cls
        assert (phi.kernel, phi.rank, phi.random_state) == (kernel, 17, 3)
        default = as_feature_map(name, kernel, None, None, 100, 2)
        assert default.rank == cls().rank


def test_as_feature_map_is_explicit_for_few_linear_features():
    assert isinstance(as_feature_map("auto", Linear(), None, None, 100, 100), Explicit)
    for features, rank, d in [("auto", None, 101), ("auto", 5, 100), ("cholesky", None, 100)]:
        phi = as_feature_map(features, Linear(), rank, None, 100, d)
        assert isinstance(phi, PivotedCholesky)


def test_as_feature_map_clones_what_is_given():
    own = Nystroem(rank=7)
    phi = as_feature_map(own, Gaussian(2.0), None, None, 10, 2)
    assert phi is not own
    assert own.kernel is None
    assert (phi.kernel, phi.rank) == (Gaussian(2.0), 7)
    phi = as_feature_map(Nystroem("linear"), Gaussian(2.0), None, None, 10, 2)
    assert phi.kernel == "linear"


@pytest.mark.parametrize("features", ["choleski", None, Nystroem, 3])
def test_as_feature_map_refuses(features):
    with pytest.raises(ValueError, match=r"features must be one of .*'auto'.*FeatureMap, got"):
        as_feature_map(features, Gaussian(), None, None, 10, 2)


@pytest.mark.slow
def test_of_many_rows_smooth_kernels_are_factored_and_others_computed():
    X = np.random.default_rng(0).normal(size=(2600, 3))
    limits = KernelRowLimits(2000, 10_000)
    smooth, rough = Gaussian(8.0), Matern(6.0, 2.5)  # 64 columns leave less than 0.1 % of both
    for kernel, kind in ((smooth, PivotedCholesky), (rough, KernelRows)):
        feature_map, features = fit_feature_map("auto", kernel, None, None, X, limits)
        assert type(feature_map) is kind
    assert features.shape == X.shape  # kernel values are not stored
    few = fit_feature_map("auto", rough, None, None, X[:2100], limits)[0]
    assert type(few) is PivotedCholesky


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        (
            {"features": Nystroem(Gaussian(0.5)), "kernel": "rbf"},
            r"kernel must be None with features that have a kernel of their own, Gaussian",
        ),
        ({"features": Nystroem(), "rank": 5}, "rank must be None with features=Nystroem"),
        ({"features": "kernel_rows", "rank": 5}, "rank must be None with features='kernel_rows'"),
    ],
)
@pytest.mark.parametrize("kind", [KernelRidge, QuantileRegressor, DensityEstimator])
def test_a_kernel_or_rank_that_is_not_read_is_refused(kind, parameters, sentence):
    X = np.linspace(0.0, 1.0, 20)[:, None]
    y = None if kind is DensityEstimator else X[:, 0]
    with pytest.raises(ValueError, match=sentence):
        kind(**parameters).fit(X, y)


@pytest.mark.parametrize("features", ["auto", "cholesky", "nystroem"])
@pytest.mark.parametrize("kind", [KernelRidge, QuantileRegressor])
def test_kernel_values_that_are_all_zero(kind, features):
    """The best constant is what can be learned."""
    cases = [("linear", np.zeros((4, 2)), np.ones((1, 2)))]
    if features != "nystroem":
        cases.append(("precomputed", np.zeros((4, 4)), np.ones((1, 4))))
    for kernel, X, new in cases:
        model = kind(alpha=0.1, kernel=kernel, features=features, learn=False)
        model.fit(X, [1.0, 2.0, 2.0, 3.0])
        np.testing.assert_allclose(model.predict(np.vstack([X[:1], new])), 2.0)
        assert model.certificate_.relative_gap < 1e-6


def test_copies_with_what_was_learned_have_the_kernel_of_the_fit():
    """Also where that is of the features, by a rule that other rows would answer otherwise."""
    X = np.linspace(0.0, 1.0, 30)[:, None]
    model = KernelRidge(features=PivotedCholesky("rbf")).fit(X, np.sin(6.0 * X[:, 0]))
    copy = model.with_learned().fit(3.0 * X, np.sin(6.0 * X[:, 0]))
    assert copy.kernel_ == model.kernel_
    assert copy.alpha_ == model.alpha_
