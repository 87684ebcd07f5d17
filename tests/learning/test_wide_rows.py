"""Learning from sparse rows, and from rows of more columns than can have a scale each."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import OneHotEncoder

from fenchel import SVR, KernelRidge, QuantileRegressor
from fenchel.kernels import (
    SHARED,
    SHARED_RANGE,
    DistanceQuantile,
    Gaussian,
    Matern,
    WithRanks,
    differentiated,
)
from fenchel.learning import Data, Learning
from fenchel.learning.parameters import OpenParameters
from fenchel.learning.rows import rows_by_content
from fenchel.losses import Squared

RANDOM = np.random.default_rng(0)


def a_table(n, seed=0):
    """Words of two columns as zeros and ones, beside a number."""
    random = np.random.default_rng(seed)
    words = np.column_stack([random.integers(0, size, n) for size in (4, 12)])
    number = random.normal(size=n)
    y = np.sin(2.0 * number) + np.linspace(-1.0, 1.0, 4)[words[:, 0]] + (words[:, 1] % 3)
    encoded = OneHotEncoder().fit(np.column_stack([np.arange(12) % 4, np.arange(12)]))
    rows = sparse.hstack([encoded.transform(words), sparse.csr_array(number[:, None])])
    return sparse.csr_array(rows), y + 0.1 * random.normal(size=n)


def texts(n, n_words=1500, seed=0):
    """Counts of words, few of which are frequent, and a sum of what each is worth."""
    random = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, n_words + 1)
    X = random.multinomial(30, share / share.sum(), n).astype(float)
    worth = X @ random.normal(size=n_words)
    return sparse.csr_array(X), worth / worth.std() + 0.3 * random.normal(size=n)


def explained(model, X, y):
    return 1.0 - np.mean((y - model.predict(X)) ** 2) / np.var(y)


@pytest.mark.parametrize("model", [KernelRidge(), SVR(), QuantileRegressor(0.5)], ids=repr)
def test_a_sparse_table_is_learned_from_as_a_dense_one(model):
    """It kept the default alpha, and explained 0.64 where the dense table explained 0.94."""
    X, y = a_table(600)
    learned = model.fit(X[:300], y[:300])
    assert learned.learned_.n_rows == 300
    assert explained(learned, X[300:], y[300:]) > 0.9


def test_alpha_of_a_given_kernel_is_that_of_the_dense_rows():
    X, y = a_table(200)
    ours, dense = (KernelRidge(kernel=Gaussian(2.0)).fit(rows, y) for rows in (X, X.toarray()))
    assert ours.learned_.alpha == pytest.approx(dense.learned_.alpha, rel=0.5)
    assert ours.learned_.criterion == pytest.approx(dense.learned_.criterion, rel=0.1)


@pytest.mark.parametrize("dense", [False, True])
def test_many_words_are_not_followed_one_by_one(dense):
    """With a length scale for each, half as much of new rows is explained."""
    X, y = texts(900)
    seen = X[:400].toarray()
    X = X.toarray() if dense else X
    model = KernelRidge().fit(X[:400], y[:400])
    assert explained(model, X[400:], y[400:]) > 0.5
    varies = np.ptp(seen, axis=0) > 0.0
    ratios = (model.kernel_.length_scale / (np.ptp(seen, axis=0) + ~varies))[varies]
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-9)


def test_one_of_many_columns_that_matters_is_found():
    random = np.random.default_rng(3)
    X = random.normal(size=(400, 150))
    y = np.sin(2.0 * X[:, 7]) + 0.1 * random.normal(size=400)
    model = KernelRidge().fit(X[:250], y[:250])
    assert isinstance(model.kernel_, WithRanks)  # with a length scale for each column
    assert explained(model, X[250:], y[250:]) > 0.8


def test_neither_order_nor_units_nor_repetition_matter():
    X, y = a_table(120)
    model = KernelRidge().fit(X, y)
    expected, order = model.predict(X), RANDOM.permutation(120)
    units = sparse.diags_array(2.0 ** RANDOM.integers(-20, 20, X.shape[1]))
    others = {
        "order": model.fit(X[order], y[order]).predict(X),
        "units": model.fit(X @ units, 8.0 * y).predict(X @ units) / 8.0,
        "weight": model.fit(X, y, np.full(120, 3.0)).predict(X),
    }
    thrice = model.fit(sparse.vstack([X] * 3, format="csr"), np.tile(y, 3)).predict(X)
    np.testing.assert_allclose(thrice, others["weight"], atol=1e-6)
    for name in ("order", "units"):
        np.testing.assert_allclose(others[name], expected, atol=1e-6, err_msg=name)


def test_groups_of_sparse_rows_are_held_out_together():
    """Rows of a group are alike, which says nothing of new groups."""
    random = np.random.default_rng(1)
    groups = np.repeat(np.arange(40), 5)
    X = sparse.csr_array(random.poisson(1.0, (40, 20))[groups] + random.poisson(0.05, (200, 20)))
    y = random.normal(size=40)[groups] + 0.1 * random.normal(size=200)
    apart, together = (KernelRidge().fit(X, y, groups=own).learned_ for own in (None, groups))
    assert apart.criterion < 0.5
    assert together.criterion > 2.0 * apart.criterion


@pytest.mark.parametrize("rule", [SHARED, SHARED_RANGE])
def test_distances_of_one_factor_are_those_in_fewer_columns(rule):
    X = RANDOM.normal(size=(20, 50)) * 10.0 ** RANDOM.uniform(-3.0, 3.0, 50) + 5.0
    rows = rows_by_content(X, X[:, :1], np.ones(20), 20, 2)
    whole = OpenParameters.of(Matern(rule), rows, share_scales=False)
    few, turned = whole.of_few_columns(rows.X)
    assert turned.shape == (20, 20)
    number, weights = np.array([0.3]), RANDOM.normal(size=(20, 20))
    one, slope = differentiated(few.with_numbers(number), turned)
    other, slopes = differentiated(whole.with_numbers(number), rows.X)
    np.testing.assert_allclose(one, other, atol=1e-12)
    np.testing.assert_allclose(
        few.gathered(slope(weights)), whole.gathered(slopes(weights)), rtol=1e-9
    )


def test_only_one_factor_of_many_columns_is_turned():
    wide, narrow = RANDOM.normal(size=(2, 12, 30)), RANDOM.normal(size=(40, 30))
    for kernel, X in [
        (Matern(), wide[0]),
        (Matern(SHARED) + Gaussian(SHARED), wide[0]),
        (Matern(SHARED), narrow),
    ]:
        rows = rows_by_content(X, X[:, :1], np.ones(len(X)), len(X), 2)
        assert OpenParameters.of(kernel, rows, share_scales=False).of_few_columns(X) is None


def test_folds_set_apart_are_held_out_of_the_rest():
    X = RANDOM.normal(size=(100, 3))
    rows = rows_by_content(X, X[:, :1], np.ones(100), 100, 10)
    unseen, rest = rows.apart()
    held = unseen.X[unseen.fold(0)]
    assert unseen.n_folds == 1
    assert len(held) == 30
    np.testing.assert_array_equal(np.vstack([held, rest.X]), rows.X)
    assert rest.n_folds == 7
    assert rest.first(70, 2).n_folds == 2


@pytest.mark.slow
def test_so_many_columns_that_few_rows_fit_are_not_learned_from():
    """A million columns: 33 rows would say little of an alpha for all of them."""
    X, y = a_table(60)
    wide = sparse.csr_array((X.data, X.indices, X.indptr), (60, 1_000_000))
    ones = np.ones(60)
    assert Data(X, y[:, None], ones, Squared(), np.eye(1), True).too_wide is False
    model = KernelRidge().fit(wide, y)
    assert model.learned_ is None
    assert model.certificate_.relative_gap <= 1e-6


def test_what_is_asked_for_stays():
    """Kernels that are named, or candidates that are given, have no others beside them."""
    X, y = texts(60, n_words=40)
    own = Learning(kernels=("gaussian",))
    assert type(KernelRidge(learn=own).fit(X, y).kernel_) is Gaussian
    assert type(KernelRidge(kernel="laplacian").fit(X, y).kernel_).__name__ == "Laplacian"
    with pytest.raises(ValueError, match="standardize must be True, False or 'range', got 'iqr'"):
        DistanceQuantile(0.5, standardize="iqr")


@pytest.mark.slow
def test_kernels_are_compared_where_many_length_scales_have_the_rows_that_they_need():
    """On 350 rows one factor for all columns is better; on all rows the loss was 0.89 with it."""
    random = np.random.default_rng(1)
    X = random.normal(size=(2000, 300))
    y = np.sqrt(0.04) * X[:, :5].sum(axis=1) + np.sqrt(0.8) * random.normal(size=2000)
    model = KernelRidge().fit(X[:1000], y[:1000])
    assert model.learned_.choice == 0
    assert model.score(X[1000:], y[1000:]) > 0.15
