"""Leave-one-out along a path from one eigendecomposition against fits without each row."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GroupKFold

from fenchel import SVR, KernelRidge
from fenchel.kernels import Decomposable, Gaussian, Laplacian
from fenchel.model_selection import KernelRidgeCV, PathSearchCV
from fenchel.solvers import leave_one_out
from pairs import pairs

ALPHAS = np.array([1.0, 1e-2, 1e-4])
MIXING = np.random.default_rng(5).normal(size=(3, 3))
COUPLINGS = {"one output": (1, None), "independent": (3, None), "coupled": (3, MIXING @ MIXING.T)}
KERNELS = {"low rank": ("linear", 40), "rough": (Laplacian(0.4), 70), "few rows": ("linear", 8)}


def loo(alphas, scales=None, selection="min", n_jobs=None, **parameters):
    """A search by the leave-one-out error."""
    grid = {"alpha": alphas} if scales is None else {"alpha": alphas, "length_scale": scales}
    options = {"selection": selection, "n_jobs": n_jobs}
    return PathSearchCV(KernelRidge(**parameters), grid, scoring="loo", **options)


def data(n, p, d=3):
    rng = np.random.default_rng([n, p])
    X = rng.uniform(-1.0, 1.0, size=(n, d))
    Y = 5.0 + np.sin(3.0 * X[:, :1]) * np.arange(1, p + 1) + 0.3 * rng.normal(size=(n, p))
    return X, Y, rng.uniform(0.2, 3.0, n)


def brute_force(plain, X, Y, weight, alpha):
    """Squared residuals, mean over outputs, of each row at the model fitted without it."""
    total, squares = weight.sum(), np.empty(len(Y))
    for i in range(len(Y)):
        rest = np.arange(len(Y)) != i
        plain.set_params(alpha=alpha * total / (total - weight[i]))
        part = plain.fit(X[rest], Y[rest], weight[rest])
        squares[i] = np.mean((Y[i] - part.predict(X[i : i + 1])[0]) ** 2)
    return squares


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "outputs", "weighted", "fit_intercept"),
    pairs(KERNELS, COUPLINGS, [True, False], [True, False]),
)
def test_scores_are_those_of_fits_without_each_row(kernel, outputs, weighted, fit_intercept):
    kernel, n = KERNELS[kernel]
    p, coupling = COUPLINGS[outputs]
    X, Y, weight = data(n, p, d=3 if n > 10 else 12)
    weight = weight if weighted else np.ones(n)
    params = {"kernel": kernel, "coupling": coupling, "fit_intercept": fit_intercept}
    search = loo(ALPHAS, **params)
    search.fit(X, Y, sample_weight=weight if weighted else None)
    results, plain = search.cv_results_, KernelRidge(**params)
    assert [point["alpha"] for point in results["params"]] == ALPHAS.tolist()
    expected = [
        -np.average(brute_force(plain, X, Y, weight, alpha), weights=weight) for alpha in ALPHAS
    ]
    np.testing.assert_allclose(results["split0_test_score"], expected, rtol=1e-10)
    assert search.alpha_ == ALPHAS[np.argmax(expected)]
    assert search.best_score_ == pytest.approx(-search.best_estimator_.loo_error_, rel=1e-10)


def test_cv_results_have_one_split():
    X, Y, _ = data(60, 2)
    scales = [0.2, 1.0]
    search = loo(ALPHAS, scales, kernel=Gaussian())
    results = search.fit(X, Y).cv_results_
    grid = {"alpha": ALPHAS, "length_scale": scales}
    folds = PathSearchCV(KernelRidge(kernel=Gaussian()), grid, cv=2).fit(X, Y)
    assert set(results) == set(folds.cv_results_) - {
        "split1_test_score",
        "split0_relative_gap",
        "split1_relative_gap",
    }
    assert results["params"] == folds.cv_results_["params"]
    np.testing.assert_array_equal(results["mean_test_score"], results["split0_test_score"])
    np.testing.assert_array_equal(results["std_test_score"], np.zeros(6))
    order = np.argsort(results["rank_test_score"])
    assert np.all(np.diff(results["mean_test_score"][order]) <= 0.0)
    assert results["rank_test_score"][search.best_index_] == 1
    for scale in scales:  # as each by itself
        alone = loo(ALPHAS, kernel=Gaussian(scale)).fit(X, Y)
        mine = [k for k, p in enumerate(results["params"]) if p["length_scale"] == scale]
        np.testing.assert_allclose(
            results["mean_test_score"][mine], alone.cv_results_["mean_test_score"], rtol=1e-12
        )
    both = loo(ALPHAS, scales, n_jobs=2, kernel=Gaussian())
    np.testing.assert_array_equal(
        both.fit(X, Y).cv_results_["mean_test_score"], results["mean_test_score"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [True, False])
def test_one_standard_error_of_the_mean_of_the_squares(weighted):
    X, Y, weight = data(70, 2)
    weight = weight if weighted else np.ones(70)
    params = {"kernel": Laplacian(0.4)}
    grid = np.geomspace(1.0, 1e-4, 25)
    best = loo(grid, **params).fit(X, Y, sample_weight=weight)
    simple = loo(grid, selection="one_standard_error", **params)
    simple.fit(X, Y, sample_weight=weight)
    squares = brute_force(KernelRidge(**params), X, Y, weight, best.alpha_)
    share = weight / weight.sum()
    error = np.sqrt(70 / 69 * np.sum(share**2 * (squares - share @ squares) ** 2))
    if not weighted:
        assert error == pytest.approx(squares.std(ddof=1) / np.sqrt(70), rel=1e-12)
    model = KernelRidge(**params)
    prepared = model.prepare(X, Y, weight)
    scores = model.leave_one_out_scores(prepared, np.array([best.alpha_]))
    np.testing.assert_allclose(scores[:, 0], [best.best_score_, error], rtol=1e-10)
    good = best.cv_results_["mean_test_score"] >= best.best_score_ - error
    assert simple.alpha_ == grid[good].max()
    assert simple.alpha_ > best.alpha_


def test_strength_is_that_of_scikit_learn_times_the_number_of_rows():
    X, Y, _ = data(40, 1)
    theirs = RidgeCV(40 * ALPHAS, store_cv_results=True).fit(X, Y[:, 0])
    ours = loo(ALPHAS, kernel="linear").fit(X, Y[:, 0])
    np.testing.assert_allclose(
        -ours.cv_results_["mean_test_score"], theirs.cv_results_.mean(axis=0), rtol=1e-10
    )
    assert 40 * ours.alpha_ == pytest.approx(theirs.alpha_)


def test_rows_of_weight_zero_take_no_part():
    X, Y, weight = data(70, 1)
    weight[::7] = 0.0
    kept = np.flatnonzero(weight)
    search = loo(ALPHAS, kernel=Laplacian(0.4))
    whole = search.fit(X, Y, sample_weight=weight).cv_results_["mean_test_score"]
    search.fit(X[kept], Y[kept], sample_weight=weight[kept])
    part = search.cv_results_["mean_test_score"]
    np.testing.assert_allclose(whole, part, rtol=1e-12)


def test_one_eigendecomposition_for_each_length_scale(monkeypatch):
    X, Y, _ = data(70, 1)
    sizes = []
    eigh = leave_one_out.eigh

    def counted(matrix, **kwargs):
        sizes.append(len(matrix))
        return eigh(matrix, **kwargs)

    monkeypatch.setattr(leave_one_out, "eigh", counted)
    loo(np.geomspace(1.0, 1e-4, 50), [0.2, 0.4], kernel=Laplacian()).fit(X, Y)
    assert [size for size in sizes if size > 1] == [70, 70]


def test_alphas_in_parts_are_the_same(monkeypatch):
    X, Y, _ = data(70, 2)
    search = loo(7, kernel=Laplacian(0.4))
    whole = search.fit(X, Y).cv_results_["mean_test_score"]
    monkeypatch.setattr(leave_one_out, "_CHUNK_VALUES", 2 * 140)
    parts = search.fit(X, Y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(parts, whole, rtol=1e-13)


def test_undefined_scores_rank_last():
    """A feature that one row alone has, and a strength that does not count."""
    X = np.column_stack([np.linspace(-1.0, 1.0, 20), np.arange(20) == 7])
    y = np.random.default_rng(0).normal(size=20)
    for selection in ("min", "one_standard_error"):
        search = loo([1e-1, 1e-18], selection=selection, kernel="linear")
        results = search.fit(X, y).cv_results_
        assert np.isnan(results["mean_test_score"]).tolist() == [False, True]
        assert results["rank_test_score"].tolist() == [1, 2]
        assert search.alpha_ == 1e-1


def test_refusals():
    X, Y, _ = data(20, 2)
    kernel = Decomposable(Gaussian(1.0), np.eye(2))
    with pytest.raises(ValueError, match="scoring='loo' needs a scalar kernel"):
        loo(ALPHAS, kernel=kernel).fit(X, Y)
    with pytest.raises(ValueError, match="scoring='loo' needs two rows of positive weight"):
        loo(ALPHAS).fit(X[:1], Y[:1])
    with pytest.raises(ValueError, match="coupling must have one row for each column"):
        loo(ALPHAS, coupling=np.eye(3)).fit(X, Y)
    with pytest.raises(ValueError, match="scoring='loo' needs an estimator with leave-one-out"):
        PathSearchCV(SVR(), {"alpha": ALPHAS}, scoring="loo").fit(X, Y)


def test_coupling_in_folds():
    X, Y, _ = data(60, 3)
    B = MIXING @ MIXING.T
    search = PathSearchCV(KernelRidge(coupling=B), {"alpha": ALPHAS}, cv=3).fit(X, Y)
    plain = KernelRidge(search.alpha_, coupling=B, learn=False).fit(X, Y)
    np.testing.assert_array_equal(search.predict(X), plain.predict(X))


def test_couplings_share_the_feature_map(monkeypatch):
    X, Y, _ = data(60, 3)
    prepared, original = [], KernelRidge.prepare

    def counted(self, *arguments, **named):
        prepared.append(self)
        return original(self, *arguments, **named)

    monkeypatch.setattr(KernelRidge, "prepare", counted)
    couplings = [np.eye(3), MIXING @ MIXING.T]
    grid = {"alpha": ALPHAS, "coupling": couplings}
    search = PathSearchCV(KernelRidge(), grid, scoring="loo", refit=False).fit(X, Y)
    assert len(prepared) == 1
    for k, coupling in enumerate(couplings):
        alone = loo(ALPHAS, coupling=coupling).fit(X, Y)
        np.testing.assert_allclose(
            search.cv_results_["mean_test_score"][3 * k : 3 * k + 3],
            alone.cv_results_["mean_test_score"],
            rtol=1e-12,
        )


def test_rows_that_stand_twice():
    """Left out, they leave a copy behind: their number as a weight, or groups, are as they say."""
    random = np.random.default_rng(0)
    rows = random.uniform(-2.0, 2.0, (40, 1))
    y = np.sin(2.0 * rows[:, 0]) + 0.3 * random.normal(size=40)
    twice, of_both, copies = np.tile(rows, (2, 1)), np.tile(y, 2), np.tile(np.arange(40), 2)
    model = KernelRidgeCV(10, length_scales=[0.01, 1.0])
    once = model.fit(rows, y).best_params_
    assert once["length_scale"] == 1.0
    assert model.fit(twice, of_both).best_params_["length_scale"] == 0.01
    counted = model.fit(rows, y, sample_weight=np.full(40, 2.0)).best_params_
    assert counted == pytest.approx(once)
    model.set_params(cv=GroupKFold(5)).fit(twice, of_both, groups=copies)
    assert model.best_params_["length_scale"] == 1.0
