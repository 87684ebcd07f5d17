"""scikit-learn's own checks, without expected failures."""

from __future__ import annotations

import re

import pytest
from sklearn import config_context
from sklearn.utils.estimator_checks import parametrize_with_checks

# The same check of the same class with rows in another container, which no parameter tells apart.
CONTAINERS = (
    "check_estimator_sparse_matrix",  # ten fits, as for sparse arrays
    "check_regressor_data_not_an_array",
    "check_regressors_train(readonly_memmap=True",
)


def with_checks(*estimators, slow_others=False):
    """Parametrize ``estimator, check`` by all checks of the first estimator of each class.

    Others of the class have different parameters: they get all but ``CONTAINERS``, as slow tests
    if ``slow_others``. The first of these is slow for all.
    """
    cases, ids, classes = [], [], set()
    for estimator in estimators:
        left_out = CONTAINERS if type(estimator) in classes else ()
        marks = [pytest.mark.slow] if slow_others and type(estimator) in classes else []
        classes.add(type(estimator))
        with config_context(print_changed_only=True):
            name = re.sub(r"\s", "", repr(estimator))
        for _, check in parametrize_with_checks([estimator]).args[1]:
            options = ",".join(f"{k}={v}" for k, v in check.keywords.items())
            called = check.func.__name__ + (f"({options})" if options else "")
            if not called.startswith(left_out):
                slow = [pytest.mark.slow] if called == CONTAINERS[0] else marks
                cases.append(pytest.param(estimator, check, marks=slow))
                ids.append(f"{name}-{called}")
    return pytest.mark.parametrize(("estimator", "check"), cases, ids=ids)
