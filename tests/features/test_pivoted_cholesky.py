import tracemalloc

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

import fenchel.features.pivoted_cholesky as module
from fenchel.features import PivotedCholesky, gram
from fenchel.kernels import (
    Callable,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    ScalarKernel,
)


def rows(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def naive(K, rank, tol=1e-10, first=0):
    """Textbook pivoted Cholesky: pivots, residual matrix."""
    rest, pivots = K.copy(), []
    while len(pivots) < rank and rest.diagonal().max() > tol * K.diagonal().max():
        pivot = int(np.argmax(rest.diagonal())) if pivots else first
        rest -= np.outer(rest[:, pivot], rest[pivot]) / rest[pivot, pivot]
        pivots.append(pivot)
    return pivots, rest


# every way through the algorithm: kernel, rows, rank given, rank found (None: not fixed)
CASES = {
    "smooth": (Gaussian(0.5), rows(300, 1), None, None),
    "dense, full rank": (Laplacian(1.0), rows(200, 3), None, 200),
    "dense, below full rank": (Gaussian(3.0), rows(300, 3), None, None),
    "dense, ours by name": ("matern32", rows(150, 20), None, 150),
    "capped in the first columns": (Laplacian(1.0), rows(300, 3), 20, 20),
    "capped at the end of the first columns": (Laplacian(1.0), rows(300, 3), 64, 64),
    "blocks": (Laplacian(1.0), rows(500, 3), 250, 250),
    "blocks that end by themselves": (Gaussian(3.0), rows(500, 3), 480, None),
    "fewer rows than a block": (Laplacian(1.0), rows(20, 3), None, 20),
    "all distances scaled": (Matern([0.1, 1.0, 10.0], 2.5), rows(120, 3), None, 120),
    "linear": (Linear(), rows(200, 5), None, 5),
    "polynomial": (Polynomial(2), rows(200, 3), None, 10),
    "scikit-learn's": (2.0 * sk.RBF(1.0) + sk.DotProduct(), rows(200, 2), None, None),
    "function": (lambda X, Y: np.minimum(X, Y.T), rows(100, 1) ** 2, None, 100),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request):
    return request.param


def test_contract(case):
    kernel, X, rank, expected = case
    phi = PivotedCholesky(kernel, rank=rank)
    features = phi.fit_transform(X)
    K = phi.kernel_(X)
    diagonal = K.diagonal().max()
    residual = K - features @ features.T

    assert features.shape == (len(X), phi.rank_)
    assert features.flags.c_contiguous
    assert expected is None or phi.rank_ == expected
    assert len(np.unique(phi.pivots_)) == phi.rank_
    np.testing.assert_array_equal(phi.landmarks_, X[phi.pivots_])
    # the error is what it says, and positive semi-definite
    error = np.trace(residual) / np.trace(K)
    assert phi.kernel_error_ == pytest.approx(error, abs=1e-13 * len(X))
    assert np.linalg.eigvalsh(residual).min() >= -1e-12 * diagonal * len(X)
    if rank is None or phi.rank_ < rank:
        assert np.abs(residual).max() <= 1.001e-10 * diagonal
    # the pivots are reproduced
    assert np.abs(residual[phi.pivots_]).max(initial=0.0) <= 1e-12 * diagonal
    # and the map is a function of the row
    tolerance = 1e-8 * np.sqrt(diagonal)
    np.testing.assert_allclose(phi.transform(X), features, atol=tolerance)
    np.testing.assert_allclose(phi.transform(X[:7]), features[:7], atol=tolerance)
    new = X[:9] + 0.1
    weights = rows(phi.rank_, 2)
    np.testing.assert_allclose(
        phi.kernel_(new, phi.landmarks_) @ phi.coefficients(weights),
        phi.transform(new) @ weights,
        atol=1e-6 * diagonal,
    )


def test_factor_is_triangular_and_factorizes(case):
    kernel, X, rank, _ = case
    phi = PivotedCholesky(kernel, rank=rank).fit(X)
    np.testing.assert_array_equal(phi.factor_, np.tril(phi.factor_))
    K = phi.kernel_(phi.landmarks_)
    np.testing.assert_allclose(phi.factor_ @ phi.factor_.T, K, atol=1e-12 * K.max())
    assert phi.factor_.diagonal().min() > 0.0


def test_greedy_pivots_are_those_of_the_textbook():
    X = rows(200, 2)
    phi = PivotedCholesky(Laplacian(1.0), rank=40).fit(X)
    middle = np.argmin((((X - X.mean(axis=0)) / X.std(axis=0)) ** 2).sum(axis=1))
    pivots, rest = naive(Laplacian(1.0)(X), 40, first=middle)
    np.testing.assert_array_equal(phi.pivots_, pivots)
    assert phi.kernel_error_ == pytest.approx(np.trace(rest) / len(X), rel=1e-9)


def test_a_first_pivot_in_the_middle_leaves_less_on_average():
    kernel, ratios = Gaussian(3.0), []
    for seed in range(5):
        X = rows(200, 5, seed)
        others = [np.trace(naive(kernel(X), 20, first=row)[1]) for row in range(10)]
        ratios.append(
            200 * PivotedCholesky(kernel, rank=20).fit(X).kernel_error_ / np.mean(others)
        )
    assert np.mean(ratios) < 0.97


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [Gaussian(1.5), Laplacian(1.0)])
def test_blocks_are_nearly_as_good_as_one_by_one(kernel):
    X = np.concatenate([rows(700, 4), 0.01 * rows(300, 4)])  # a crowd of near-duplicates
    blocked = PivotedCholesky(kernel, rank=300)
    features = blocked.fit_transform(X)
    _, rest = naive(kernel(X), 300)
    assert (1.0 - (features**2).sum(axis=1)).max() <= 1.5 * rest.max()
    assert blocked.kernel_error_ <= 1.5 * np.trace(rest) / len(X)


@pytest.mark.slow
def test_blocks_do_not_spend_rank_on_near_duplicates():
    X = np.random.default_rng(0).uniform(size=(1500, 2))
    pivots, _ = naive(Gaussian(0.3)(X), 400)
    assert 64 < len(pivots) < 200
    assert abs(PivotedCholesky(Gaussian(0.3), rank=400).fit(X).rank_ - len(pivots)) <= 1


def test_smooth_kernels_stop_early_whatever_the_number_of_rows(monkeypatch):
    asked = []
    block = module.Gram.block

    def counted(self, rows, pivots):
        values = block(self, rows, pivots)
        asked.append(values.size)
        return values

    monkeypatch.setattr(module.Gram, "block", counted)
    X = np.random.default_rng(0).uniform(0, 1.5, (20_000, 1))
    phi = PivotedCholesky(Gaussian(0.5)).fit(X)
    assert phi.rank_ <= 14
    assert sum(asked) == len(X) * phi.rank_
    assert phi.kernel_error_ <= 1e-10


def test_no_square_array_where_the_rank_is_capped():
    X = rows(6000, 3)
    tracemalloc.start()
    phi = PivotedCholesky(Laplacian(1.0), rank=150).fit(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert phi.rank_ == 150
    assert peak < 6000 * 6000 * 8 / 4


@pytest.mark.slow
def test_default_cap_shrinks_with_the_number_of_rows(monkeypatch):
    caps = []
    blocked = module.blocked
    monkeypatch.setattr(
        module, "blocked", lambda gram, cap, *rest: caps.append(cap) or blocked(gram, 70, *rest)
    )
    for n in (6000, 30_000, 260_000):
        PivotedCholesky(Laplacian(0.1)).fit(rows(n, 2))
    assert caps == [2.5e7 // 6000, 2.5e7 // 30_000, 100]


def test_tolerance():
    X = rows(300, 1)
    ranks = []
    for tol in (1e-2, 1e-5, 1e-10):
        phi = PivotedCholesky(Gaussian(0.5), tol=tol)
        features = phi.fit_transform(X)
        assert (1.0 - (features**2).sum(axis=1)).max() <= tol * (1 + 1e-5)
        ranks.append(phi.rank_)
    assert ranks == sorted(set(ranks))
    finest = PivotedCholesky(Gaussian(0.5), tol=0.0)
    np.testing.assert_allclose(finest.fit_transform(X), finest.transform(X), atol=1e-6)
    assert finest.kernel_error_ < 1e-14


@pytest.mark.parametrize("d", [1, 20])
@pytest.mark.parametrize("n", [30, 200])
def test_repeated_rows_cost_no_rank(d, n):
    X = rows(n, d)
    phi = PivotedCholesky(Laplacian(1.0))
    features = phi.fit_transform(np.repeat(X, 3, axis=0))
    assert phi.rank_ == n
    np.testing.assert_allclose(features[::3], features[1::3], atol=1e-8)


@pytest.mark.parametrize("d", [1, 3])
def test_small_and_constant_data(d):
    one = PivotedCholesky().fit_transform(rows(1, d))
    np.testing.assert_array_equal(one, [[1.0]])
    same = PivotedCholesky().fit_transform(np.full((5, d), 0.1))
    np.testing.assert_array_equal(same, np.ones((5, 1)))
    X = np.column_stack([rows(50, 1), np.full((50, d), 0.1)])
    plain = PivotedCholesky().fit(X[:, :1])
    assert PivotedCholesky().fit(X).rank_ == plain.rank_


@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
def test_a_kernel_that_is_zero_has_one_feature_that_is(kernel):
    phi = PivotedCholesky(kernel)
    np.testing.assert_array_equal(phi.fit_transform(np.zeros((4, 4))), np.zeros((4, 1)))
    np.testing.assert_array_equal(phi.transform(np.zeros((3, 4))), np.zeros((3, 1)))
    assert phi.kernel_error_ == 0.0


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_scale_of_the_kernel_does_not_matter(scale):
    X = rows(150, 3)
    plain = PivotedCholesky(Gaussian(2.0)).fit(X)
    scaled = PivotedCholesky(sk.ConstantKernel(scale) * Gaussian(2.0)).fit(X)
    assert scaled.rank_ == plain.rank_
    ours = scaled.transform(X) / scale**0.5
    np.testing.assert_allclose(ours, plain.transform(X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("rank", [None, 30, 100, 150])
@pytest.mark.parametrize("kernel", [Laplacian(1.0), Gaussian(2.0)])
def test_precomputed_agrees_with_the_kernel(kernel, rank):
    X, new = rows(150, 2), rows(10, 2, seed=1)
    given = PivotedCholesky("precomputed", rank=rank)
    features = given.fit_transform(kernel(X))
    evaluated = PivotedCholesky(kernel, rank=rank).fit(X)
    residual = kernel(X) - features @ features.T
    assert given.kernel_error_ == pytest.approx(np.trace(residual) / 150, abs=1e-12)
    assert given.kernel_error_ == pytest.approx(evaluated.kernel_error_, rel=0.3, abs=1e-10)
    np.testing.assert_allclose(given.transform(kernel(X)), features, atol=1e-8)
    exact = kernel(new, X)
    off = np.abs(given.transform(exact) @ features.T - exact).max()
    assert off <= np.sqrt(np.diag(residual).max()) + 1e-6
    np.testing.assert_allclose(
        exact[:, given.pivots_] @ given.coefficients(np.eye(given.rank_)),
        given.transform(exact),
        atol=1e-6,
    )


def indefinite(n, rank=5):
    vectors = np.linalg.qr(rows(n, n))[0]
    values = np.r_[np.linspace(1.0, 2.0, rank), -0.01, np.zeros(n - rank - 1)]
    return (vectors * values) @ vectors.T


@pytest.mark.parametrize("rank", [None, 3, 10, 70])
@pytest.mark.parametrize(
    "K",
    [
        -np.eye(100),
        np.diag(np.r_[np.ones(99), -1e-3]),
        np.eye(100)[::-1].copy(),
        -np.abs(np.subtract.outer(np.arange(100.0), np.arange(100.0))),
    ],
    ids=["negative", "one negative", "swapped", "zero diagonal"],
)
def test_gram_matrix_that_is_not_positive_semidefinite(K, rank):
    with pytest.raises(ValueError, match=r"positive semi-definite.*kernel='precomputed', X"):
        PivotedCholesky("precomputed", rank=rank).fit(K)
    index = np.arange(100.0)[:, None]

    def function(X, Y):
        return K[np.ix_(X[:, 0].astype(int), Y[:, 0].astype(int))]

    with pytest.raises(ValueError, match="positive semi-definite"):
        PivotedCholesky(function, rank=rank).fit(index)


@pytest.mark.parametrize("n", [20, 200])
def test_slightly_indefinite(n):
    with pytest.raises(ValueError, match="positive semi-definite"):
        PivotedCholesky("precomputed").fit(indefinite(n))


@pytest.mark.parametrize(("i", "j"), [(399, 0), (200, 199), (10, 5), (399, 398), (257, 130)])
def test_a_pair_that_disagrees_is_found_wherever_it_is(i, j):
    features = rows(400, 3)
    K = features @ features.T
    assert PivotedCholesky("precomputed").fit(K).rank_ == 3
    K[i, j] += 1e-3  # as large as rank 3 leaves nothing
    K[j, i] += 1e-3
    with pytest.raises(ValueError, match="positive semi-definite"):
        PivotedCholesky("precomputed").fit(K)


def test_rounding_is_no_reason_to_refuse():
    K = Gaussian(5.0)(rows(100, 2))
    K += 1e-14 * rows(100, 100)
    K = (K + K.T) / 2
    assert PivotedCholesky("precomputed").fit(K).kernel_error_ < 1e-9
    assert PivotedCholesky("precomputed").fit(np.diag([1.0, -1e-15])).rank_ == 1


@pytest.mark.parametrize(
    ("K", "sentence"),
    [
        (np.ones((3, 2)), "square Gram matrix, got shape"),
        (np.array([[1.0, 0.5], [0.5 + 1e-6, 1.0]]), "symmetric"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "NaN"),
    ],
)
def test_bad_gram_matrix(K, sentence):
    with pytest.raises(ValueError, match=sentence):
        PivotedCholesky("precomputed").fit(K)


def test_noise_is_no_kernel_of_two_rows():
    with pytest.raises(ValueError, match=r"must agree for equal rows.*WhiteKernel"):
        PivotedCholesky(sk.RBF() + sk.WhiteKernel(0.1)).fit(rows(20, 2))


class Keeping(ScalarKernel):
    """A kernel whose values of many rows are an array that it keeps."""

    def __init__(self, values=None):
        self.values = values

    def _evaluate(self, X, Y):
        return self.values if len(X) == len(Y) == 100 else Laplacian(1.0)(X, Y)


@pytest.mark.parametrize("of_a_function", [True, False])
def test_kernel_values_that_are_in_use_elsewhere_are_left_alone(of_a_function):
    X = rows(100, 3)
    values = Laplacian(1.0)(X)
    known, kernel = values.copy(), Keeping(values)
    phi = PivotedCholesky(kernel._evaluate if of_a_function else kernel)
    phi.kernel_ = phi._resolved_kernel(X)
    if not of_a_function:  # clones have copies of their parameters
        phi.kernel_.values = values
    features = phi._fit(X)
    phi.rank_ = features.shape[1]
    assert phi.rank_ == 100  # by LAPACK, which overwrites what it is given
    np.testing.assert_array_equal(values, known)
    np.testing.assert_allclose(features @ features.T, known, atol=1e-12)


@pytest.mark.parametrize("n", [300, 700])
@pytest.mark.parametrize("first", [64, 250])
@pytest.mark.parametrize("rank", [280, None])
def test_a_factorization_goes_on_where_a_smaller_rank_ended_it(n, first, rank):
    X = rows(n, 3)
    begun = PivotedCholesky(Laplacian(1.0), rank=first)
    features = begun.fit_transform(X)
    assert begun.rank_ == first
    features = begun.set_params(rank=rank).beyond(X, features)
    whole = PivotedCholesky(Laplacian(1.0), rank=rank).fit(X)

    assert begun.rank_ == whole.rank_ == features.shape[1] == (rank or n)
    assert begun.kernel_error_ == pytest.approx(whole.kernel_error_, rel=0.05, abs=1e-12)
    np.testing.assert_allclose(begun.transform(X), features, atol=1e-9)
    missed = begun.kernel_(X) - features @ features.T
    np.testing.assert_allclose(missed[begun.pivots_], 0.0, atol=1e-12)
    assert np.linalg.eigvalsh(missed).min() > -1e-10


def test_function_may_return_a_view_that_cannot_be_written():
    phi = PivotedCholesky(Callable(lambda X, Y: np.broadcast_to(1.0, (len(X), len(Y)))))
    np.testing.assert_array_equal(phi.fit_transform(rows(5, 2)), np.ones((5, 1)))


@pytest.mark.parametrize("rank", [0, -1, 2.5, True, "5"])
def test_bad_rank(rank):
    with pytest.raises((ValueError, TypeError), match="rank must be an integer >= 1 or None, got"):
        PivotedCholesky(rank=rank).fit(rows(5, 1))


@pytest.mark.parametrize("tol", [-1.0, 1.0, np.nan, "small"])
def test_bad_tolerance(tol):
    with pytest.raises(
        (ValueError, TypeError), match=r"tol must be a number in \[0, 1\) or None, got"
    ):
        PivotedCholesky(tol=tol).fit(rows(5, 1))


def test_pivots_among_some_rows_and_among_all_where_these_leave_too_much():
    X = np.sort(rows(3000, 1), axis=0)
    ends = np.concatenate([np.arange(50), np.arange(2950, 3000)])
    spread, half = np.union1d(np.arange(0, 3000, 10), ends), np.arange(0, 1500, 5)
    for some, enough in [(spread, True), (half, False)]:
        phi = PivotedCholesky(Gaussian(0.5), tol=1e-8)
        features = phi.fit_among(X, some)
        K = phi.kernel_(X)
        residual = K - features @ features.T
        assert np.abs(residual).max() <= 1.1e-8
        assert np.array_equal(phi.landmarks_, X[phi.pivots_])
        assert np.isin(phi.pivots_, some).all() == enough
        assert phi.transform(X[:50]) == pytest.approx(features[:50], abs=1e-7)
        assert features[phi.pivots_] == pytest.approx(phi.factor_, abs=1e-12)
        assert phi.kernel_error_ == pytest.approx(np.trace(residual) / 3000, abs=1e-12)


def test_pivots_among_some_rows_are_capped():
    X = rows(500, 1)
    phi = PivotedCholesky(Laplacian(1.0), rank=30)
    features = phi.fit_among(X, np.arange(0, 500, 4))
    left = 500 - np.einsum("ij,ij->", features, features)
    assert features.shape == (500, 30)
    assert phi.kernel_error_ == pytest.approx(left / 500)


REPEATED = np.repeat(rows(60, 3), 3, axis=0)
FEW = {
    "smooth": (Gaussian(0.5), rows(300, 1)),
    "rough": (Laplacian(1.0), rows(500, 3)),
    "many columns": (Matern(5.0), rows(200, 40)),
    "of the rank of rows": (Linear(), rows(100, 4)),
    "ties": (Gaussian(1.0), np.indices((12, 12)).reshape(2, -1).T.astype(float)),
    "repeats": (Matern(1.0), REPEATED),
    "of scikit-learn": (sk.RationalQuadratic(), rows(150, 2)),
    "a matrix": ("precomputed", Gaussian(1.0)(REPEATED)),
}


@pytest.mark.parametrize("name", FEW)
def test_all_kernel_values_of_few_rows_give_what_their_columns_do(name, monkeypatch):
    kernel, X = FEW[name]
    fits = []
    for size in (len(X), len(X) - 1):
        monkeypatch.setattr(gram, "_FEW", size)
        model = PivotedCholesky(kernel, rank=50)
        fits.append((model.fit_transform(X), model.pivots_, model.kernel_error_))
    (features, pivots, error), (others, theirs, their_error) = fits
    assert np.array_equal(pivots, theirs)
    assert features.flags.c_contiguous
    assert features.shape == others.shape
    assert np.allclose(features, others, rtol=0.0, atol=1e-7 * np.abs(others).max())
    assert error == pytest.approx(their_error, abs=1e-12)


def test_a_matrix_of_few_rows_may_be_read_only_and_in_any_order():
    K = Gaussian(1.0)(rows(40, 2))
    expected = PivotedCholesky("precomputed", rank=20).fit_transform(K)
    for other in (np.asfortranarray(K), K.copy()):
        other.flags.writeable = False
        assert np.array_equal(
            PivotedCholesky("precomputed", rank=20).fit_transform(other), expected
        )
