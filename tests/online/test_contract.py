"""scikit-learn's own checks, without expected failures."""

from __future__ import annotations

import pytest

from contract_cases import with_checks
from fenchel import online

ESTIMATORS = [
    online.WidrowHoff(),
    online.WidrowHoff(average=True, schedule="inverse_sqrt", fit_intercept=False),
    online.OnlineRidge(),
    online.OnlineLasso(),
    online.OnlineSVR(),
    online.OnlineSVR(budget=100),
    online.OnlineSVR(average=True, fit_intercept=False),
    online.OnlineQuadraticSVR(),
]


@with_checks(*ESTIMATORS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_every_learner_is_checked():
    assert {type(e).__name__ for e in ESTIMATORS} == set(online.__all__)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_tags(estimator):
    tags = estimator.__sklearn_tags__()
    assert tags.estimator_type == "regressor"
    assert not tags.target_tags.multi_output
    assert not tags.input_tags.sparse
    assert not tags.input_tags.pairwise
