"""Every public estimator in files, pickles, clones, and with columns that have names."""

from __future__ import annotations

import pickle
import pkgutil

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import fenchel
from ecosystem.registry import CASES, COLUMNS, NEW, X, answers, public_estimators
from fenchel.persistence import load_metadata

pytestmark = pytest.mark.filterwarnings("ignore:the feature map of rank")  # small on purpose
every = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@pytest.fixture(scope="module")
def fitted():
    """Of each class, the model fitted to arrays, made when it is asked for."""
    models = {}

    def get(case):
        if case.name not in models:
            models[case.name] = case.fitted()
        return models[case.name]

    return get


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert np.all(np.isfinite(one))
        np.testing.assert_array_equal(one, other)


def test_every_public_estimator_is_here_once():
    names = [case.name for case in CASES]  # searches once for each estimator inside
    assert len(names) == len(set(names))
    assert {type(case.estimator) for case in CASES} == public_estimators()


def test_every_room_is_reached_from_the_root():
    """As ``fenchel.room``, without an import; ``cli`` and ``files`` are not for users."""
    rooms = {module.name for module in pkgutil.iter_modules(fenchel.__path__) if module.ispkg}
    assert rooms - {"cli", "files"} <= set(dir(fenchel))
    assert rooms - {"cli", "files"} <= set(fenchel.__all__)


@every
def test_the_model_says_something(case, fitted):
    """Else equal answers would mean nothing."""
    assert np.ptp(answers(fitted(case))[0], axis=0).min() > 1e-3


@every
def test_files(case, fitted, tmp_path):
    model = fitted(case)
    path = fenchel.save(model, tmp_path / "model.skops")
    same = fenchel.load(path)
    assert type(same) is type(model)
    assert_same(answers(same), answers(model))
    assert set(same.get_params()) == set(model.get_params())
    assert load_metadata(path)["versions"]["fenchel"] == fenchel.__version__


@every
def test_pickles(case, fitted):
    assert_same(answers(pickle.loads(pickle.dumps(fitted(case)))), answers(fitted(case)))


@every
def test_a_clone_is_unfitted_and_fits_alike(case, fitted):
    model = fitted(case)
    copy = clone(model)
    with pytest.raises(NotFittedError):
        check_is_fitted(copy)
    targets = case.y
    assert_same(answers(copy.fit(X, targets, **case.extra)), answers(model))


@every
def test_parameters_may_be_set_to_what_they_are(case):
    parameters = case.estimator.get_params(deep=False)
    blank = type(case.estimator)()
    assert blank.set_params(**parameters) is blank
    found = blank.get_params(deep=False)
    assert all(found[name] is value for name, value in parameters.items())
    with pytest.raises(ValueError, match="Invalid parameter 'colour'"):
        blank.set_params(colour="red")


@every
def test_pandas(case, fitted):
    frame = pd.DataFrame(X, columns=COLUMNS)
    model = case.fresh().fit(frame, _as_pandas(case.y), **case.extra)
    assert list(model.feature_names_in_) == COLUMNS
    assert model.n_features_in_ == len(COLUMNS)
    assert_same(answers(model, pd.DataFrame(NEW, columns=COLUMNS)), answers(fitted(case)))
    with pytest.raises(ValueError, match="feature names should match"):
        answers(model, pd.DataFrame(NEW, columns=COLUMNS[::-1]))


@every
def test_polars(case, fitted):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = polars.DataFrame(X, schema=COLUMNS)
    y = case.y
    if y is not None:
        y = polars.Series("y", y) if y.ndim == 1 else polars.DataFrame(y)
    model = case.fresh().fit(frame, y, **case.extra)
    assert list(model.feature_names_in_) == COLUMNS
    assert_same(answers(model, polars.DataFrame(NEW, schema=COLUMNS)), answers(fitted(case)))
    with pytest.raises(ValueError, match="feature names should match"):
        answers(model, polars.DataFrame(NEW, schema=COLUMNS[::-1]))


def _as_pandas(y):
    """Targets with row labels that are not their numbers."""
    if y is None:
        return None
    labels = [f"row {i}" for i in range(len(y))]
    return pd.Series(y, labels) if y.ndim == 1 else pd.DataFrame(y, labels)
