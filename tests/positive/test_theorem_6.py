"""Theorem 6 with any loss and the elastic penalty, against semidefinite programs."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

import positive_referee as referee
from fenchel.kernels import Gaussian
from fenchel.losses import Pinball
from fenchel.model_selection import PathSearchCV
from fenchel.positive import ConeRegressor
from positive.test_cone import CONES, EDGES, SQUARE, data, prepared_of

KAPPA = 0.3


def optimum(features, Y, weight, cone, strengths, loss):
    """(15), with A_s = P_s - N_s and losses as epigraphs; τ of a pinball loss, or "huber"."""
    (n, p), r = Y.shape, features.shape[1]
    m, alpha, lam = r * (r + 1) // 2, *strengths
    size = 2 * p * m + 3 * n * p  # P, N, then z and two numbers for each loss
    P, N = np.split(np.arange(2 * p * m), 2)
    z, s, t = np.split(np.arange(2 * p * m, size), 3)
    square, linear = np.zeros((size, size)), np.zeros(size)
    one = np.eye(p * m)
    square[np.ix_(P, P)] = square[np.ix_(N, N)] = alpha * one
    square[np.ix_(P, N)] = square[np.ix_(N, P)] = -alpha * one
    linear[P] = linear[N] = lam * np.tile(referee.triangle(np.eye(r)), p)
    c = np.repeat(weight / weight.sum(), p)
    values = np.array([referee.triangle(np.outer(f, f)) for f in features])
    table = np.zeros((n * p, size))
    for output in range(p):
        rows = np.arange(n) * p + output
        table[np.ix_(rows, P[output * m : (output + 1) * m])] = values
        table[np.ix_(rows, N[output * m : (output + 1) * m])] = -values
    table[:, z] = -np.eye(n * p)
    parts = [(table, np.zeros(n * p), [clarabel.ZeroConeT(n * p)])]
    y = Y.ravel()

    def above(slope):  # t >= slope (y - z)
        rows = np.zeros((n * p, size))
        rows[:, z], rows[:, t] = -np.diag(np.full(n * p, slope)), -np.eye(n * p)
        return rows, -slope * y, [clarabel.NonnegativeConeT(n * p)]

    if loss == "huber":  # of the length of y - z: ½‖s‖² + κ t, t >= ‖y - z - s‖
        square[s, s] = c
        first = t.reshape(n, p)[:, 0]
        linear[first] = KAPPA * c[::p]
        ball = np.zeros((n, p + 1, size))
        right = np.zeros((n, p + 1))
        ball[np.arange(n), 0, first] = -1.0
        for output in range(p):
            ball[np.arange(n), 1 + output, z.reshape(n, p)[:, output]] = 1.0
            ball[np.arange(n), 1 + output, s.reshape(n, p)[:, output]] = 1.0
        right[:, 1:] = Y
        kinds = [clarabel.SecondOrderConeT(p + 1)] * n
        parts.append((ball.reshape(-1, size), right.ravel(), kinds))
        square[t, t] = np.where(np.isin(t, first), 0.0, 1.0)  # those that are not needed
    else:
        linear[t] = c
        square[s, s] = 1.0  # not needed
        parts += [above(loss), above(loss - 1.0)]
    for block in (P, N):
        rows = np.zeros((p * m, size))
        rows[:, block] = -one
        parts.append((rows, np.zeros(p * m), [clarabel.PSDTriangleConeT(r)] * p))
    rows = np.zeros((len(cone) * m, size))
    rows[:, P], rows[:, N] = -np.kron(cone, np.eye(m)), np.kron(cone, np.eye(m))
    parts.append((rows, np.zeros(len(rows)), [clarabel.PSDTriangleConeT(r)] * len(cone)))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    result = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(square)),
        linear,
        sparse.csc_matrix(np.concatenate([rows for rows, _, _ in parts])),
        np.concatenate([right for _, right, _ in parts]),
        [kind for _, _, kinds in parts for kind in kinds],
        settings,
    ).solve()
    assert str(result.status) in {"Solved", "AlmostSolved"}
    return result.obj_val


@pytest.mark.slow
@pytest.mark.parametrize("trace_penalty", [0.0, 1e-2])
@pytest.mark.parametrize("loss", ["huber", "pinball"])
@pytest.mark.parametrize("name", ["monotone", "square", "non_negative"])
def test_any_loss_against_a_semidefinite_program(name, loss, trace_penalty):
    X, Y, weight = data(20)
    cone = CONES[name] if name == "square" else name
    shape = {"kernel": Gaussian(4.0), "rank": 4, "solver": "splitting"}
    scale = ConeRegressor(cone, **shape, learn=False).fit(X, Y, weight).scale_
    model = ConeRegressor(
        cone,
        loss=loss,
        level=0.7,
        kappa=KAPPA * scale,
        alpha=1e-2,
        tol=1e-6,
        trace_penalty=trace_penalty,
        max_iter=20_000,
        **shape,
        learn=False,
    ).fit(X, Y, weight)
    prepared, features = prepared_of(model, X, Y, weight)
    kind = 0.7 if loss == "pinball" else "huber"
    strengths = 1e-2, trace_penalty
    best = optimum(features, prepared.targets, weight, CONES[name], strengths, kind)
    certificate = model.certificate_
    assert certificate.relative_gap <= 1e-6
    assert certificate.dual <= best + 1e-7
    assert certificate.primal == pytest.approx(best, abs=3e-6)
    # the objective from the public attributes
    residual, matrices = (Y - model.predict(X)) / model.scale_, model.matrices_ / model.scale_
    size = np.linalg.norm(residual, axis=1)
    losses = np.maximum(0.7 * residual, -0.3 * residual).sum(axis=1)
    if loss == "huber":
        losses = np.where(size <= KAPPA, 0.5 * size**2, KAPPA * size - 0.5 * KAPPA**2)
    objective = np.average(losses, weights=weight) + 0.5e-2 * np.sum(matrices**2)
    objective += trace_penalty * np.abs(np.linalg.eigvalsh(matrices)).sum()
    assert certificate.primal == pytest.approx(objective, rel=1e-8)
    combined = np.einsum("ts,sab->tab", CONES[name], model.matrices_)
    assert np.linalg.eigvalsh(combined).min() >= -1e-12


def test_squared_loss_with_a_nuclear_norm():
    """Half of Huber's loss with a threshold beyond all residuals, and lower ranks."""
    X, Y, weight = data(20)
    options = {"alpha": 1e-3, "kernel": Gaussian(4.0), "rank": 4, "tol": 1e-7}
    penalized = ConeRegressor("monotone", trace_penalty=0.05, **options, learn=False).fit(
        X, Y, weight
    )
    wide = ConeRegressor(
        "monotone", loss="huber", kappa=1e3, trace_penalty=0.05, **options, learn=False
    ).fit(X, Y, weight)
    assert penalized.certificate_.primal == pytest.approx(wide.certificate_.primal, abs=1e-6)
    free = ConeRegressor("monotone", **options, learn=False).fit(X, Y, weight)
    nuclear = [np.abs(np.linalg.eigvalsh(m.matrices_)).sum() for m in (penalized, free)]
    assert nuclear[0] < 0.8 * nuclear[1]


@pytest.mark.parametrize("trace_penalty", [0.0, 1e-2])
@pytest.mark.parametrize("loss", ["squared", "pinball"])
def test_solvers_agree(loss, trace_penalty):
    X, Y, weight = data(20)
    model = ConeRegressor(
        "non_negative",
        loss=loss,
        alpha=1e-2,
        trace_penalty=trace_penalty,
        kernel=Gaussian(4.0),
        rank=4,
        tol=1e-6,
        max_iter=20_000,
        learn=False,
    )
    fits = [clone(model).set_params(solver=s).fit(X, Y, weight) for s in ("auto", "splitting")]
    objectives = [fit.certificate_.primal for fit in fits]
    assert objectives[0] == pytest.approx(objectives[1], abs=2e-6)
    assert fits[0].n_iter_ != fits[1].n_iter_
    if trace_penalty == 0.0:  # there is a choice of them with a nuclear norm
        np.testing.assert_allclose(fits[0].multipliers_, fits[1].multipliers_, atol=5e-3)


def test_solver_is_obeyed_or_refused():
    X, Y, _ = data()
    with pytest.raises(ValueError, match="solver must be 'auto' or 'splitting' for these inequa"):
        ConeRegressor("monotone", solver="newton", learn=False).fit(X, Y)
    with pytest.raises(ValueError, match=r"solver must be 'auto', 'newton', .* with generators"):
        ConeRegressor(generators=EDGES, solver="splitting", learn=False).fit(X, Y)
    turned = ConeRegressor(
        np.linalg.qr(SQUARE[:3])[0], solver="proximal_newton", alpha=1e-2, learn=False
    )
    turned.fit(X, Y)
    assert turned.certificate_.relative_gap <= 1e-6
    with pytest.raises(ValueError, match="solver must be 'auto' or 'splitting' for these inequa"):
        clone(turned).set_params(trace_penalty=1e-3).fit(X, Y)


def test_generators_with_another_loss():
    X, Y, weight = data(20)
    model = ConeRegressor(
        generators=EDGES,
        loss="pinball",
        level=0.7,
        alpha=1e-2,
        kernel=Gaussian(4.0),
        rank=4,
        tol=1e-7,
        learn=False,
    ).fit(X, Y, weight)
    prepared, _ = prepared_of(model, X, Y, weight)
    best = referee.pinball(model._problem(prepared), prepared.targets, (0.7, 0.7, 0.7))
    assert model.certificate_.primal == pytest.approx(best, abs=1e-6)


def test_quantiles_in_order_by_theorem_6():
    """Three levels of one target under the monotone cone: curves that cross nowhere."""
    X, Y, _ = data(60)
    targets = np.repeat(Y[:, :1], 3, axis=1)
    model = ConeRegressor(
        "monotone", loss=Pinball([0.2, 0.5, 0.8]), alpha=1e-3, tol=1e-4, learn=False
    )
    curves = model.fit(X, targets).predict(np.linspace(-5.0, 5.0, 500)[:, None])
    assert np.diff(curves, axis=1).min() >= 0.0
    below = (Y[:, :1] <= model.predict(X)).mean(axis=0)
    np.testing.assert_allclose(below, [0.2, 0.5, 0.8], atol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("cone", ["monotone", SQUARE])
def test_in_the_search(cone):
    X, Y, _ = data(30)
    plain = ConeRegressor(cone, kernel=Gaussian(1.0), tol=1e-6, learn=False)
    grid = {"alpha": [1e-1, 1e-3], "trace_penalty": [0.0, 1e-2], "loss": ["squared", "huber"]}
    folds = KFold(3)
    ours = PathSearchCV(plain, grid, cv=folds, selection="min").fit(X, Y)
    theirs = GridSearchCV(plain, grid, cv=folds).fit(X, Y)

    def found(search):
        return {
            (p["alpha"], p["trace_penalty"], p["loss"]): score
            for p, score in zip(
                search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
            )
        }

    expected = found(theirs)
    for key, score in found(ours).items():
        assert score == pytest.approx(expected[key], abs=2e-3)
    assert ours.best_params_ == theirs.best_params_
