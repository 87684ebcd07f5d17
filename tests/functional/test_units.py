"""Curves in other units: the same fits, whatever the loss and whether anything is learned."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.functional import FunctionalRegressor
from fenchel.learning import Learning
from fenchel.losses import Pinball
from fenchel.model_selection import PathSearchCV

RNG = np.random.default_rng(0)
THETA = np.linspace(0.0, 1.0, 15)
X = RNG.uniform(size=(30, 2))
Y = np.sin(6.0 * (X[:, :1] + THETA)) + X[:, 1:] * THETA + 0.2 * RNG.normal(size=(30, 15))
LOSSES = ["squared", "absolute", "huber", "pinball", "squared_pinball", "epsilon_insensitive"]
LOSSES += ["squared_epsilon_insensitive", Pinball(0.8)]


def named(loss):
    return loss if isinstance(loss, str) else "own"


@pytest.mark.parametrize("learn", [Learning(max_evaluations=4), False], ids=["learned", "usual"])
@pytest.mark.parametrize("factor", [1e-6, 1e5])
@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_units_do_not_matter(loss, factor, learn):
    plain, scaled = (FunctionalRegressor(loss, level=0.8, learn=learn, tol=1e-8) for _ in range(2))
    plain.fit(X, Y, THETA)
    scaled.fit(X, factor * Y, THETA)
    size = np.abs(Y).max()
    np.testing.assert_allclose(scaled.predict(X) / factor, plain.predict(X), atol=1e-3 * size)
    assert scaled.score(X, factor * Y) == pytest.approx(plain.score(X, Y), abs=1e-3)


@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_grids_of_strengths_are_in_units_of_the_curves(loss):
    model = FunctionalRegressor(loss, level=0.8, learn=False)
    plain, scaled = (
        PathSearchCV(model, {"alpha": 3}, cv=2).fit(X, times * Y, theta=THETA)
        for times in (1.0, 1e3)
    )
    index = [search.best_index_ for search in (plain, scaled)]
    assert index[0] == index[1]
    np.testing.assert_allclose(scaled.predict(X) / 1e3, plain.predict(X), atol=0.01)
