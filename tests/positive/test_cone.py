"""Regression with outputs in a polyhedral cone."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score

import fenchel
import positive_referee as referee
from contract_cases import with_checks
from fenchel.kernels import Gaussian
from fenchel.positive import ConeRegressor, monotone_cone, non_negative_cone

# over a square: four facets and four edges in three dimensions
SQUARE = np.array([[1.0, 0.0, 1.0], [-1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, -1.0, 1.0]])
EDGES = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [-1.0, 1.0, 1.0], [-1.0, -1.0, 1.0]])
# the third and the last follow from the others
REDUNDANT = np.array([[1.0, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]])
REDUNDANT /= np.linalg.norm(REDUNDANT, axis=1, keepdims=True)
CONES = {
    "non_negative": non_negative_cone(3),
    "monotone": monotone_cone(3),
    "square": SQUARE,
    "redundant": REDUNDANT,
}


def data(n=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, 1))
    x = X[:, 0]
    Y = np.column_stack([np.sin(2 * x), np.cos(2 * x), 0.4 + 0.3 * x])
    return X, Y + 0.1 * rng.normal(size=Y.shape), rng.integers(1, 4, n).astype(float)


@with_checks(
    # alternating directions converge linearly: a small gap for predictions to seven digits
    ConeRegressor(kernel=Gaussian(8.0), alpha=1e-2, tol=1e-11, learn=False),
    ConeRegressor(generators=[[1.0]], kernel=Gaussian(8.0), learn=False),
    slow_others=True,
)
def test_scikit_learn(estimator, check):
    if estimator.generators is not None and check.func.__name__ == "check_regressor_multioutput":
        pytest.skip("the generators have one output")
    check(estimator)


def theorem_6(features, Y, weight, cone, alpha):
    """The optimum of (15) by Clarabel, from its definition."""
    p = Y.shape[1]
    r = features.shape[1]
    m = r * (r + 1) // 2
    rows = np.array([referee.triangle(np.outer(f, f)) for f in features])
    c = weight / weight.sum()
    gram = rows.T @ (c[:, None] * rows) + alpha * np.eye(m)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    result = clarabel.DefaultSolver(
        sparse.csc_matrix(np.kron(np.eye(p), gram)),
        -(rows.T @ (c[:, None] * Y)).T.ravel(),
        sparse.csc_matrix(-np.kron(cone, np.eye(m))),
        np.zeros(len(cone) * m),
        [clarabel.PSDTriangleConeT(r)] * len(cone),
        settings,
    ).solve()
    assert str(result.status) in {"Solved", "AlmostSolved"}
    return result.obj_val + 0.5 * float(c @ np.sum(Y**2, axis=1))


def prepared_of(model, X, Y, weight):
    prepared = model.prepare(X, Y, weight)
    one = np.ones((len(X), 1))
    return prepared, np.hstack([prepared.inputs.features, one])


@pytest.mark.parametrize("name", CONES)
def test_inequalities_against_a_semidefinite_program(name):
    X, Y, weight = data()
    cone = name if name in ("non_negative", "monotone") else CONES[name]
    model = ConeRegressor(cone, alpha=1e-3, rank=5, kernel=Gaussian(2.0), tol=1e-8, learn=False)
    model.fit(X, Y, weight)
    prepared, features = prepared_of(model, X, Y, weight)
    optimum = theorem_6(features, prepared.targets, weight, CONES[name], 1e-3)
    certificate = model.certificate_
    assert certificate.dual <= optimum + 1e-7
    assert certificate.primal == pytest.approx(optimum, abs=1e-7)
    # the objective from the public attributes
    residual = (Y - model.predict(X)) / model.scale_
    matrices = model.matrices_ / model.scale_
    objective = 0.5 * np.average(np.sum(residual**2, axis=1), weights=weight)
    objective += 0.5e-3 * np.sum(matrices**2)
    assert certificate.primal == pytest.approx(objective, rel=1e-9)
    combined = np.einsum("ts,sab->tab", CONES[name], model.matrices_)
    assert np.linalg.eigvalsh(combined).min() >= -1e-12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "needed", "cone"),
    [
        ("squared", np.eye(3), REDUNDANT),
        ("absolute", np.eye(3), REDUNDANT),
        ("squared", monotone_cone(3), [*monotone_cone(3), [-1.0, 0.0, 1.0]]),
    ],
)
def test_inequalities_that_follow_from_others_change_nothing(loss, needed, cone):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (80, 2))
    Y = np.column_stack([np.sin(X[:, 0]) + 0.5, X[:, 1], X[:, 0] * X[:, 1]])
    alone = ConeRegressor(needed, loss=loss, learn=False).fit(X, Y)
    model = ConeRegressor(cone, loss=loss, learn=False).fit(X, Y)
    assert model.status_.converged
    assert model.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=1e-9)
    forces = [np.einsum("ts,tab->sab", each.cone_, each.multipliers_) for each in (alone, model)]
    np.testing.assert_allclose(forces[1], forces[0], atol=1e-8)
    assert model.multipliers_.shape[0] == len(model.cone_) == len(cone)
    assert not model.multipliers_[-1].any()


def test_generators_against_a_semidefinite_program():
    X, Y, weight = data()
    model = ConeRegressor(
        generators=EDGES,
        alpha=1e-3,
        trace_penalty=1e-3,
        rank=5,
        kernel=Gaussian(2.0),
        tol=1e-8,
        learn=False,
    ).fit(X, Y, weight)
    prepared, _ = prepared_of(model, X, Y, weight)
    optimum = referee.squared(model._problem(prepared), prepared.targets)
    assert model.certificate_.primal == pytest.approx(optimum, abs=1e-7)
    residual = (Y - model.predict(X)) / model.scale_
    objective = 0.5 * np.average(np.sum(residual**2, axis=1), weights=weight)
    for factor in model.factors_:
        matrix = factor @ factor.T / model.scale_
        objective += 1e-3 * np.trace(matrix) + 0.5e-3 * np.sum(matrix**2)
    assert model.certificate_.primal == pytest.approx(objective, rel=1e-8)


@pytest.mark.parametrize("name", CONES)
def test_outputs_lie_in_the_cone_everywhere(name):
    X, Y, _ = data()
    cone = name if name in ("non_negative", "monotone") else CONES[name]
    points = np.random.default_rng(1).uniform(-8.0, 8.0, (20_000, 1))
    prediction = ConeRegressor(cone, tol=1e-4, learn=False).fit(X, Y).predict(points)
    rounding = 0.0 if isinstance(cone, str) else 1e-12
    assert np.min(prediction @ CONES[name].T) >= -rounding
    assert np.ptp(prediction, axis=0).min() > 0.1  # not because they do nothing


def test_hulls_lie_in_the_cone_everywhere():
    X, Y, _ = data()
    points = np.random.default_rng(1).uniform(-8.0, 8.0, (20_000, 1))
    prediction = ConeRegressor(generators=EDGES, tol=1e-4, learn=False).fit(X, Y).predict(points)
    assert np.min(prediction @ SQUARE.T) >= -1e-12


def test_inequalities_are_the_larger_set_for_a_cone_over_a_square():
    """A fit of matrices that are no hull: A = (σ_x, σ_z, I) in the features (cos, sin)."""
    angle = np.linspace(0.0, np.pi, 20, endpoint=False)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    Y = np.column_stack([np.sin(2 * angle), np.cos(2 * angle), np.ones(20)])
    settings = {"kernel": "linear", "alpha": 1e-6, "tol": 1e-7}
    inequalities = ConeRegressor(SQUARE, **settings, learn=False).fit(X, Y)
    hull = ConeRegressor(generators=EDGES, **settings, learn=False).fit(X, Y)
    assert np.mean((inequalities.predict(X) - Y) ** 2) < 1e-6
    assert np.mean((hull.predict(X) - Y) ** 2) > 1e-3


@pytest.mark.slow
def test_follows_the_free_direction_and_the_scale():
    X, Y, weight = data()
    model = ConeRegressor("monotone", tol=1e-9, learn=False)
    first = model.fit(X, Y, weight).predict(X)
    second = model.fit(X, 50.0 * Y - 2e3, weight).predict(X)
    np.testing.assert_allclose(second, 50.0 * first - 2e3, rtol=0, atol=50.0 * 1e-3)
    assert r2_score(Y, first) == pytest.approx(model.fit(X, Y, weight).score(X, Y))


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"cone": "monotone"}, {"generators": EDGES}])
def test_weights_are_repetitions_and_models_survive_files(settings, tmp_path):
    X, Y, weight = data()
    weight[:3] = 0.0
    model = ConeRegressor(**settings, kernel=Gaussian(1.0), tol=1e-9, learn=False).fit(
        X, Y, weight
    )
    primal, weighted = model.certificate_.primal, model.predict(X)
    assert np.all(model.dual_coef_[:3] == 0.0)
    same = fenchel.load(fenchel.save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(same.predict(X), weighted)
    count = weight.astype(int)
    model.fit(np.repeat(X, count, axis=0), np.repeat(Y, count, axis=0))
    assert model.certificate_.primal == pytest.approx(primal, abs=1e-8)
    np.testing.assert_allclose(model.predict(X), weighted, atol=1e-3)


def test_usual_cones():
    np.testing.assert_array_equal(non_negative_cone(3), np.eye(3))
    values = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 2.0], [-1.0, 0.0, 0.0]])
    inside = np.all(values @ monotone_cone(3).T >= 0.0, axis=1)
    np.testing.assert_array_equal(inside, [True, False, True])
    inside = np.all(values @ monotone_cone(3, non_negative=True).T >= 0.0, axis=1)
    np.testing.assert_array_equal(inside, [True, False, False])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"cone": "ordered"}, "cone must be one of 'non_negative', 'monotone', an array"),
        ({"cone": np.eye(2)}, r"cone must have rows of 3 entries.*shape \(2, 2\)"),
        ({"cone": np.zeros((1, 3))}, "cone must have finite rows that are not zero"),
        ({"cone": [[1.0, 0, 0], [-1.0, 0, 0]]}, "cone must have interior points"),
        (
            {"cone": "monotone", "generators": EDGES},
            "cone must be None where generators are given",
        ),
        ({"generators": [[0.0, 0.0, 0.0]]}, "generators must have finite rows that are not zero"),
        (
            {"cone": "monotone", "trace_penalty": -1.0},
            "trace_penalty must be a finite number >= 0",
        ),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"alpha": 0.0}, "alpha must be a finite number > 0"),
    ],
)
def test_bad_parameters(settings, sentence):
    X, Y, _ = data()
    with pytest.raises(ValueError, match=sentence):
        ConeRegressor(**settings, learn=False).fit(X, Y)


def test_an_order_needs_two_outputs():
    X, Y, _ = data()
    with pytest.raises(ValueError, match="cone='monotone' needs two or more outputs, got 1"):
        ConeRegressor("monotone", learn=False).fit(X, Y[:, 0])


def test_too_few_steps_are_told():
    X, Y, _ = data()
    with pytest.warns(ConvergenceWarning, match="increase max_iter"):
        ConeRegressor("monotone", max_iter=1, learn=False).fit(X, Y)


def test_a_fit_keeps_nothing_of_one_of_the_other_kind():
    X, Y = np.linspace(0.0, 1.0, 12)[:, None], np.ones((12, 2))
    model = ConeRegressor(learn=False).fit(X, Y)
    model.set_params(generators=np.eye(2)).fit(X, Y)
    assert not hasattr(model, "matrices_")
    assert not hasattr(model, "multipliers_")
    model.set_params(generators=None).fit(X, Y)
    assert not hasattr(model, "factors_")
