"""What a search along a path refuses is one sentence that names the argument."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import make_scorer, max_error
from sklearn.model_selection import KFold, LeaveOneOut

from fenchel import KernelRidge
from fenchel.model_selection import PathSearchCV

X = np.random.default_rng(0).normal(size=(40, 2))
Y = X[:, 0]


def test_scorings_that_are_none():
    said = (
        r"^scoring must be 'loo', a name of sklearn\.metrics\.get_scorer_names\(\) such as "
        r"'r2', a function or None, got 'x'$"
    )
    with pytest.raises(ValueError, match=said):
        PathSearchCV(KernelRidge(), scoring="x").fit(X, Y)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_more_folds_than_rows(n):
    said = f"^cv must be at most the number of rows of X .*, got cv=5 with n_samples={n}$"
    with pytest.raises(ValueError, match=said):
        PathSearchCV(KernelRidge()).fit(X[:n], Y[:n])
    weights = np.zeros(40)
    weights[:n] = 1.0
    with pytest.raises(ValueError, match=said):
        PathSearchCV(KernelRidge()).fit(X, Y, sample_weight=weights)


@pytest.mark.parametrize(("zero", "side"), [(slice(10), "hold out"), (slice(10, 40), "fit")])
def test_splits_without_weight_on_a_side(zero, side):
    weight = np.ones(40)
    weight[zero] = 0.0
    said = rf"^cv must have rows of positive weight .*, got none to {side} in split 0 of KFold"
    with pytest.raises(ValueError, match=said):
        PathSearchCV(KernelRidge(), cv=KFold(4)).fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("model", [KernelRidge(), PathSearchCV(KernelRidge())])
def test_targets_that_are_not_finite_are_named(model, value):
    y = Y.copy()
    y[[7, 9]] = value
    for given, place in ((y, "7"), (y.tolist(), "7"), (np.column_stack([Y, y]), "7, 1")):
        said = rf"^Input y contains .*, first in y\[{place}\]$"
        with pytest.raises(ValueError, match=said):
            model.fit(X, given)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_that_are_not_finite_are_named(value):
    rows = np.column_stack([X, X])
    rows[[5, 9], -1] = value
    last = rows.shape[1] - 1
    frame = pd.DataFrame(rows, columns=[f"c{k}" for k in range(last + 1)])
    for given, place in ((rows, rf"X\[5, {last}\]"), (frame, f"column 'c{last}' in row 5")):
        with pytest.raises(ValueError, match=rf"^Input X contains .*, first in {place}"):
            KernelRidge().fit(given, Y)


def _largest_error(model, X, y):
    return -np.abs(model.predict(X) - y).max()


@pytest.mark.parametrize("scoring", [_largest_error, make_scorer(max_error)])
def test_scorings_without_weights_are_named(scoring):
    search = PathSearchCV(KernelRidge(), {"alpha": [0.1, 1.0]}, scoring=scoring)
    assert np.isfinite(search.fit(X, Y).best_score_)
    said = r"^scoring must take sample_weight if fit is given sample_weight, got .*does not$"
    with pytest.raises(TypeError, match=said):
        search.fit(X, Y, sample_weight=np.ones(40))


def test_words_as_strengths():
    said = r"^param_grid\['alpha'\] must be a sequence of .* finite numbers, got \['a', 1\]$"
    with pytest.raises(ValueError, match=said):
        PathSearchCV(KernelRidge(), {"alpha": ["a", 1]}).fit(X, Y)


@pytest.mark.filterwarnings("ignore:R.2 score is not well-defined")
def test_a_choice_without_scores_says_so():
    """R² of folds of one row is undefined: the choice would be that of the first candidate."""
    search = PathSearchCV(KernelRidge(), {"alpha": [10.0, 0.1]}, cv=LeaveOneOut())
    with pytest.warns(UserWarning, match=r"^no candidate has a score that is a finite number"):
        search.fit(X[:5], Y[:5])
