"""Learners in files go on from where they were."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import fenchel
from fenchel.kernels import Gaussian, Matern
from fenchel.online import OnlineLasso, OnlineQuadraticSVR, OnlineRidge, OnlineSVR, WidrowHoff

LEARNERS = [
    WidrowHoff(average=10, schedule="inverse_sqrt"),
    OnlineRidge(0.1),
    OnlineLasso(0.1, step=0.01),
    OnlineSVR(kernel=Gaussian(0.5), budget=30, removal="oldest"),
    OnlineSVR(kernel=2.0 * Matern("median"), average=True),
    OnlineQuadraticSVR(),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_a_loaded_learner_goes_on(learner, tmp_path):
    random = np.random.default_rng(0)
    X = random.standard_normal((200, 2))
    y = X[:, 0] + 0.1 * random.standard_normal(200)
    model = clone(learner).partial_fit(X[:120], y[:120])
    same = fenchel.load(fenchel.save(model, tmp_path / "model.skops"))
    assert same.get_params().keys() == model.get_params().keys()
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    before = model.predict(X)
    same.partial_fit(X[120:], y[120:])
    np.testing.assert_array_equal(model.predict(X), before)
    model.partial_fit(X[120:], y[120:])
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert same.t_ == 200
    assert np.any(before != model.predict(X))


def test_room_is_imported_when_asked_for():
    assert fenchel.online.WidrowHoff is WidrowHoff
    assert "online" in dir(fenchel)
