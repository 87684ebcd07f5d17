"""Docstrings have the sections that users look for, also in ``help``."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from docs.test_reference import documented, resolved

CLASSES = {name: value for name in documented() if inspect.isclass(value := resolved(name))}
# those that fit and predict; bases say what subclasses define
ESTIMATORS = {
    name: value
    for name, value in CLASSES.items()
    if hasattr(value, "fit")
    and (hasattr(value, "predict") or hasattr(value, "score_samples"))
    and not name.startswith(("fenchel.estimator.", "fenchel.learning_estimator."))
}
ON_CLUSTERS = "fenchel.dask."  # their example is that of the guide


def sections(value: Any) -> set[str]:
    """Headings of the docstring, as numpydoc writes them."""
    text = inspect.getdoc(value) or ""
    return set(re.findall(r"^([A-Z][A-Za-z ]+)\n-{3,}$", text, re.MULTILINE))


def test_there_are_estimators() -> None:
    """The list is not empty by mistake."""
    assert len(ESTIMATORS) > 20


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_estimators_say_what_users_look_for(name: str) -> None:
    """Of the class: parameters, attributes and an example."""
    wanted = {"Parameters", "Attributes", "Examples"}
    if name.startswith(ON_CLUSTERS):
        wanted = {"Parameters"}
    assert wanted <= sections(ESTIMATORS[name])


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_methods_say_what_users_look_for(name: str) -> None:
    """Of fit what it raises, of predictions what they return."""
    estimator = ESTIMATORS[name]
    assert {"Parameters", "Raises"} <= sections(estimator.fit)
    for method in ("predict", "predict_interval", "predict_distribution"):
        found = getattr(estimator, method, None)
        delegated = (inspect.getdoc(found) or "").startswith("Call ")
        if found is not None and not delegated and not name.startswith(ON_CLUSTERS):
            assert {"Parameters", "Returns"} <= sections(found), method


def test_docstrings_have_no_line_to_the_left() -> None:
    """A continued line would end the indentation, and with it the sections in ``help``."""
    for name, value in CLASSES.items():
        lines = (value.__doc__ or "").splitlines()[1:]
        assert not [line for line in lines if line and not line.startswith(" ")], name


def test_functions_with_parameters_say_what_they_return() -> None:
    """Those that return something."""
    missing = []
    for name in documented():
        value = resolved(name)
        if not inspect.isfunction(value) or "Parameters" not in sections(value):
            continue
        returns = str(inspect.signature(value).return_annotation)
        if returns != "None" and not sections(value) & {"Returns", "Yields"}:
            missing.append(name)
    assert not missing
