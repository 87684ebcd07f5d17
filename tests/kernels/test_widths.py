import numpy as np
import pytest

from fenchel.kernels import DistanceQuantile, Gaussian, Laplacian, Matern, resolve


def distances(X):
    return np.array([np.linalg.norm(X[i] - X[j]) for i in range(len(X)) for j in range(i)])


@pytest.fixture
def X():
    random = np.random.default_rng(0)
    return random.normal(size=(61, 3)) * [1e-3, 1.0, 1e4]


@pytest.mark.parametrize("q", [0.0, 0.1, 0.5, 0.7, 1.0])
def test_quantile_of_all_pairs(X, q):
    length = DistanceQuantile(q).measure(X)
    found = distances(X)
    assert np.isclose(found, length, rtol=1e-12).any()
    assert np.mean(found <= length * (1 + 1e-12)) >= q
    assert np.mean(found < length * (1 - 1e-12)) <= q


def test_names(X):
    half = len(distances(X)) // 2
    median = resolve(Gaussian("median"), X).length_scale
    assert median == pytest.approx(np.sort(distances(X))[half - 1])
    deviation = X.std(axis=0)
    scale = resolve(Gaussian("scale"), X).length_scale
    expected = deviation * np.sort(distances(X / deviation))[half - 1]
    np.testing.assert_allclose(scale, expected, rtol=1e-12)


def test_default_is_scale_and_does_not_care_for_units(X):
    units = np.array([1e-6, 7.0, 1e5])
    for cls in (Gaussian, Laplacian, Matern):
        K = resolve(cls(), X)(X)
        other = (X + np.array([1e-3, 1.0, 1e4])) * units
        np.testing.assert_allclose(resolve(cls(), other)(other), K, atol=1e-8)
        assert 0.2 < np.median(K) < 0.8  # neither the identity nor constant
    assert np.median(resolve(Gaussian("median"), X)(X)) > 0.2


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("q", [0.0, 0.25, 0.5, 0.7, 1.0])
def test_weights_are_repetitions(X, q, standardize):
    rule = DistanceQuantile(q, standardize)
    weight = np.random.default_rng(1).integers(0, 4, len(X)).astype(float)
    repeated = np.repeat(X, weight.astype(int), axis=0)
    expected = rule.measure(repeated)
    np.testing.assert_allclose(rule.measure(X, weight), expected, rtol=1e-12)
    np.testing.assert_allclose(rule.measure(X, 0.3 * weight), expected, rtol=1e-12)
    if 0.0 < q < 1.0:
        assert not np.allclose(rule.measure(X), expected, rtol=1e-6)


@pytest.mark.parametrize("standardize", [False, True])
def test_zero_weight_is_removal(X, standardize):
    weight = np.ones(len(X))
    weight[::3] = 0.0
    outlying = X.copy()
    outlying[::3] = 1e9
    rule = DistanceQuantile(0.7, standardize)
    np.testing.assert_allclose(
        rule.measure(outlying, weight), rule.measure(X[weight > 0]), rtol=1e-12
    )


@pytest.mark.parametrize("weight", [None, np.array([1.0, 2.0, 3.0])])
def test_no_positive_distance_and_constant_columns(weight):
    same = np.full((3, 2), 0.1)
    assert DistanceQuantile(0.5).measure(same, weight) == 1.0
    np.testing.assert_array_equal(DistanceQuantile(0.5, True).measure(same, weight), [1.0, 1.0])
    X = np.column_stack([[0.0, 1.0, 5.0], [0.1, 0.1, 0.1]])
    length = DistanceQuantile(0.5, True).measure(X, weight)
    alone = DistanceQuantile(0.5, True).measure(X[:, :1], weight)
    assert length[0] == pytest.approx(alone[0])
    assert length[1] == pytest.approx(alone[0] / np.sqrt(_variance(X[:, 0], weight)))


def _variance(x, weight):
    return np.average((x - np.average(x, weights=weight)) ** 2, weights=weight)


def test_one_row():
    assert DistanceQuantile(0.5).measure(np.ones((1, 2))) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_many_rows_are_sampled_with_a_fixed_seed(weighted):
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 2))
    weight = np.where(X[:, 0] > 0, 3.0, 1.0) if weighted else None
    rule = DistanceQuantile(0.7)
    length = rule.measure(X, weight)
    assert length == rule.measure(X, weight)
    assert length == rule.measure(X, weight, random_state=0)
    assert length != rule.measure(X, weight, random_state=1)
    first, second = np.triu_indices(len(X), 1)
    found = np.linalg.norm(X[first] - X[second], axis=1)
    share = np.ones(len(found)) if weight is None else weight[first] * weight[second]
    assert np.average(found <= length, weights=share) == pytest.approx(0.7, abs=0.02)
    standardized = DistanceQuantile(0.7, True).measure(X * [1e-3, 1e3], weight)
    np.testing.assert_allclose(standardized, length * np.array([1e-3, 1e3]), rtol=0.1)
    if weighted:
        assert length != pytest.approx(rule.measure(X), rel=0.005)


def test_rows_of_no_weight_do_not_count_as_many():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    weight = np.zeros(3000)
    weight[:100] = 1.0
    rule = DistanceQuantile(0.5, True)
    np.testing.assert_allclose(rule.measure(X, weight), rule.measure(X[:100]), rtol=1e-12)


@pytest.mark.parametrize("q", [-0.1, 1.1, np.nan])
def test_bad_level(q):
    with pytest.raises(ValueError, match=r"q must be in \[0, 1\], got"):
        DistanceQuantile(q)
