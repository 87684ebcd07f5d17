"""Points that fits on prepared curves hand on, with the values of their functions."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.functional import FunctionalRegressor
from fenchel.kernels import Gaussian, Laplacian


def draw(gaps=False, seed=0):
    rng = np.random.default_rng(seed)
    X, theta = rng.uniform(size=(40, 2)), np.linspace(0.0, 1.0, 25)
    y = np.sin(5.0 * (theta + X[:, :1])) + 0.3 * rng.standard_normal((40, 25))
    y[:4] += 4.0
    if gaps:
        y[rng.uniform(size=y.shape) < 0.2] = np.nan
    return X, y, theta


def regressor(**parameters):
    given = {"norm": 1, "kernel": Gaussian(0.7), "output_kernel": Laplacian(0.3), "alpha": 1e-3}
    return FunctionalRegressor("huber", **{**given, "kappa": 0.3, "tol": 1e-9, **parameters})


@pytest.mark.parametrize("alpha", [1e-3, 4e-4])
@pytest.mark.parametrize(
    "options", [{}, {"norm": 2, "n_components": 5}, {"kernel": Gaussian(6.0)}]
)
def test_values_are_those_of_the_point_whatever_the_strength(options, alpha):
    weight = np.r_[0.0, np.ones(39)]
    model = regressor(**options)
    prepared = model.prepare(*draw(), weight)
    start = model.fit_prepared(prepared)
    assert start.shape == (2, 40, 25)
    problem = model.set_params(alpha=alpha).make_problem(prepared)
    outputs = next(iter(prepared.represented.values())).outputs
    warm = outputs.start(start[:, prepared.inputs.kept], alpha)
    values = problem.design.values(problem.link(warm.dual))
    np.testing.assert_allclose(warm.values, values, atol=1e-7 * np.abs(values).max())


@pytest.mark.parametrize("gaps", [False, True])
def test_a_path_comes_to_what_fits_from_nothing_do(gaps):
    model = regressor()
    prepared, known = model.prepare(*draw(gaps)), []
    for kappa in (1.0, 0.5, 0.25, 0.12, 0.06):
        model.set_params(kappa=kappa)
        start = known[-1] if known else None
        if len(known) > 1:
            start = start + (start - known[-2])
        known.append(model.fit_prepared(prepared, start))
        assert np.isnan(known[-1][1]).all() == gaps  # known where all points are
        assert model.status_.converged
        alone = regressor(kappa=kappa).fit(*draw(gaps))
        gap = model.certificate_.gap + alone.certificate_.gap
        assert abs(model.certificate_.primal - alone.certificate_.primal) <= gap
        assert model.n_iter_ <= alone.n_iter_


def test_warm_starts_of_other_rows_take_no_values_along():
    model = regressor(warm_start=True).fit(*draw())
    model.fit(*draw(seed=1))
    alone = regressor().fit(*draw(seed=1))
    assert model.status_.converged
    gap = model.certificate_.gap + alone.certificate_.gap
    assert abs(model.certificate_.primal - alone.certificate_.primal) <= gap
