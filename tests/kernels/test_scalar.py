import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

from fenchel.kernels import (
    Callable,
    DistanceQuantile,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    WithRanks,
)
from fenchel.kernels.distances import squared_distances


def cauchy(X, Y):
    return 1.0 / (1.0 + cdist(X, Y, "sqeuclidean"))


def _distance(x, y):
    return np.sqrt(np.sum((x - y) ** 2))


# kernel, the same from its formula for two rows
DEFINITIONS = [
    (Gaussian(1.7), lambda x, y: np.exp(-(_distance(x, y) ** 2) / (2 * 1.7**2))),
    (Laplacian(1.7), lambda x, y: np.exp(-_distance(x, y) / 1.7)),
    (Matern(1.7, 0.5), lambda x, y: np.exp(-_distance(x, y) / 1.7)),
    (
        Matern(1.7, 1.5),
        lambda x, y: (
            (1 + 3**0.5 * _distance(x, y) / 1.7) * np.exp(-(3**0.5) * _distance(x, y) / 1.7)
        ),
    ),
    (
        Matern(1.7, 2.5),
        lambda x, y: (
            (1 + 5**0.5 * _distance(x, y) / 1.7 + 5 / 3 * (_distance(x, y) / 1.7) ** 2)
            * np.exp(-(5**0.5) * _distance(x, y) / 1.7)
        ),
    ),
    (Polynomial(1, 0.3, 2.0), lambda x, y: 0.3 * (x @ y) + 2.0),
    (Polynomial(2, 0.3, 0.5), lambda x, y: (0.3 * (x @ y) + 0.5) ** 2),
    (Polynomial(3), lambda x, y: (x @ y + 1.0) ** 3),
    (Polynomial(6, 0.1, 0.0), lambda x, y: (0.1 * (x @ y)) ** 6),
    (Polynomial(7, 0.1), lambda x, y: (0.1 * (x @ y) + 1.0) ** 7),
    (Linear(), lambda x, y: x @ y),
    (Callable(cauchy), lambda x, y: 1 / (1 + _distance(x, y) ** 2)),
]
KERNELS = [kernel for kernel, _ in DEFINITIONS]
RADIAL = [Gaussian, Laplacian, Matern]


@pytest.fixture(params=[1, 3, 20])
def X(request):
    return np.random.default_rng(0).normal(loc=3.0, size=(40, request.param))


@pytest.mark.parametrize(
    ("kernel", "definition"),
    DEFINITIONS,
    ids=lambda each: "" if type(each).__name__ == "function" else repr(each),
)
@pytest.mark.parametrize("n_others", [1, 7, 15])
def test_definition(kernel, definition, n_others, X):
    Y = np.random.default_rng(1).normal(loc=3.0, size=(n_others, X.shape[1]))
    truth = np.array([[definition(x, y) for y in Y] for x in X])
    np.testing.assert_allclose(kernel(X, Y), truth, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(kernel(Y, X), truth.T, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gram_matrix(kernel, X):
    K = kernel(X)
    np.testing.assert_array_equal(K, K.T)
    scale = np.abs(K).max()
    np.testing.assert_allclose(K, kernel(X, X.copy()), atol=1e-13 * scale)
    np.testing.assert_allclose(kernel.diag(X), np.diag(K), rtol=1e-13)
    assert np.linalg.eigvalsh(K).min() >= -1e-13 * len(X) * scale
    if kernel.is_stationary():
        assert np.all(np.diag(K) == 1.0)
        np.testing.assert_allclose(kernel(X + 1.0), K, atol=1e-12)
    elif not isinstance(kernel, Callable):
        assert not np.allclose(kernel(X + 1.0), K)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Gaussian(0.8), sk.RBF(0.8)),
        (Gaussian([0.5, 1.0, 2.0]), sk.RBF([0.5, 1.0, 2.0])),
        (Matern(0.8, 0.5), sk.Matern(0.8, nu=0.5)),
        (Matern(0.8, 1.5), sk.Matern(0.8, nu=1.5)),
        (Matern([0.5, 1.0, 2.0], 2.5), sk.Matern([0.5, 1.0, 2.0], nu=2.5)),
        (Laplacian(0.8), sk.Matern(0.8, nu=0.5)),
        (Polynomial(2, 1.0, 4.0), sk.DotProduct(2.0) ** 2),
    ],
    ids=repr,
)
def test_agrees_with_scikit_learn(ours, theirs):
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(30, 3)), random.normal(size=(20, 3))
    np.testing.assert_allclose(ours(X, Y), theirs(X, Y), rtol=1e-12)
    np.testing.assert_allclose(ours(X), theirs(X), rtol=1e-12)


def test_composites():
    X = np.random.default_rng(0).normal(size=(12, 2))
    g, m = Gaussian(0.7), Matern(1.3)
    for composite, truth in [
        (g + m, g(X) + m(X)),
        (g * m, g(X) * m(X)),
        (2.0 * g, 2.0 * g(X)),
        (g + 0.5, g(X) + 0.5),
        (g**3, g(X) ** 3),
        (g * sk.RBF(2.0) + sk.DotProduct(1.0), g(X) * sk.RBF(2.0)(X) + 1.0 + X @ X.T),
        (sk.ConstantKernel(3.0) * (Linear() + m), 3.0 * (X @ X.T + m(X))),
    ]:
        np.testing.assert_allclose(composite(X), truth, rtol=1e-13)
        np.testing.assert_allclose(composite.diag(X), np.diag(truth), rtol=1e-13)
        assert clone(composite) == composite


@pytest.mark.parametrize("kernel", [*KERNELS, Gaussian(), Laplacian("median"), Precomputed()])
def test_clone_and_parameters(kernel):
    copy = clone(kernel)
    assert copy is not kernel
    assert copy == kernel
    assert type(kernel)(**kernel.get_params()) == kernel
    assert kernel.theta.size == 0
    if "length_scale" in kernel.get_params():
        assert copy.set_params(length_scale=0.123).length_scale == 0.123
        assert copy != kernel


def test_repr_is_the_constructor_call():
    for kernel in [*KERNELS[:-1], Gaussian(), Gaussian(DistanceQuantile(0.7)), Precomputed()]:
        assert eval(repr(kernel)) == kernel


def test_repr_of_many_numbers_is_short():
    kernel = WithRanks(Gaussian(np.arange(1.0, 81.0)), np.arange(40), np.zeros((40, 2, 129)))
    assert repr(kernel) == (
        "WithRanks(kernel=Gaussian(length_scale=[1. 2. 3. ... 78. 79. 80.]), "
        "columns=[0 1 2 ... 37 38 39], knots=...)"
    )
    assert repr(Gaussian(np.array([0.5, 20.0]))) == "Gaussian(length_scale=[0.5 20.])"
    assert repr(Gaussian(np.float64(0.5))) == "Gaussian(length_scale=0.5)"


@pytest.mark.parametrize("cls", RADIAL)
def test_equality_compares_lengths_of_any_kind(cls):
    two, three = np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    assert cls(two) == cls(two.copy())
    for other in (cls(three), cls(2 * two), cls("scale"), cls(1.0), cls(DistanceQuantile(0.7))):
        assert cls(two) != other
        assert other != cls(two)
    assert Laplacian(1.0) != Gaussian(1.0)


def test_gaussian_process_takes_them():
    X = np.linspace(0, 3, 20)[:, None]
    y = np.sin(X[:, 0])
    ours = GaussianProcessRegressor(Gaussian(0.8), alpha=1e-6).fit(X, y)
    theirs = GaussianProcessRegressor(sk.RBF(0.8), alpha=1e-6, optimizer=None).fit(X, y)
    points = np.linspace(0, 3, 7)[:, None]
    np.testing.assert_allclose(ours.predict(points), theirs.predict(points), atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_no_gradient(kernel):
    with pytest.raises(ValueError, match="eval_gradient must be False"):
        kernel(np.ones((2, 1)), eval_gradient=True)


@pytest.mark.parametrize("cls", RADIAL)
@pytest.mark.parametrize("width", ["scale", "median", DistanceQuantile(0.7)])
def test_unresolved_width_says_what_to_do(cls, width):
    with pytest.raises(ValueError, match=r"fit an estimator, or call .*resolve"):
        cls(width)(np.ones((2, 1)))


BAD_WIDTHS = [0.0, -1.0, np.nan, np.inf, "mean", "2.0", None, [1.0, -1.0], [[1.0]], [1.0, np.inf]]


@pytest.mark.parametrize("width", BAD_WIDTHS, ids=repr)
def test_bad_width(width):
    with pytest.raises(ValueError, match=r"length_scale must be a positive number, .*got"):
        Gaussian(width)(np.ones((2, 2)))


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        (Gaussian([1.0, 2.0, 3.0]), "one entry for each of the 2 features, got 3"),
        (Matern(1.0, nu=1.0), "nu must be 0.5, 1.5 or 2.5, got 1.0"),
        (Polynomial(degree=0), "degree must be an integer >= 1, got 0"),
        (Polynomial(degree=1.5), "degree must be an integer >= 1, got 1.5"),
        (Polynomial(degree="2"), "degree must be an integer >= 1, got '2'"),
        (Polynomial(degree=np.inf), "degree must be an integer >= 1, got inf"),
        (Polynomial(gain=0.0), "gain must be a finite number > 0, got 0.0"),
        (Polynomial(offset=-1.0), "offset must be a finite number >= 0, got -1.0"),
        (Callable(lambda X, Y: X), r"must return an array \(3, 3\)"),
        (Precomputed(), "cannot be evaluated"),
    ],
    ids=repr,
)
def test_bad_parameters(kernel, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        kernel(np.ones((3, 2)))


def test_rows_must_be_two_dimensional():
    with pytest.raises(ValueError, match="two-dimensional"):
        Gaussian(1.0)([1.0, 2.0])


def test_inputs_stay_as_they_are():
    X = np.random.default_rng(0).normal(size=(10, 3))
    for kernel in [*KERNELS, Callable(lambda X, Y: X @ Y.T)]:
        before = X.copy()
        kernel(X), kernel(X, X[:2]), kernel.diag(X)
        np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("n_features", [1, 2, 12, 13, 40])
@pytest.mark.parametrize(("n", "m"), [(30, 1), (30, 7), (30, 8), (3, 30), (30, 30)])
def test_squared_distances(n_features, n, m):
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(n, n_features)), random.normal(size=(m, n_features))
    truth = ((X[:, None] - Y) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared_distances(X, Y), truth, rtol=1e-12)
    X, Y = X + 1e3, Y + 1e3
    truth = ((X[:, None] - Y) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared_distances(X, Y), truth, rtol=1e-12)


@pytest.mark.parametrize("n_features", [2, 30])
def test_squared_distances_far_from_the_origin_and_of_near_duplicates(n_features):
    random = np.random.default_rng(0)
    X = random.normal(size=(40, n_features)) + 1e6
    X[1] = X[0]
    X[2] = X[0] + 1e-5
    X[:20] -= 1e3  # so that centring alone does not do
    truth = ((X[:, None] - X) ** 2).sum(axis=2)
    for squares in (squared_distances(X, X), squared_distances(X, X.copy())):
        np.testing.assert_allclose(squares, truth, rtol=1e-6)
        assert squares[0, 1] == 0.0
    np.testing.assert_array_equal(squared_distances(X, X), squared_distances(X, X).T)
