"""Docstrings have the sections that users look for, also in ``help``."""

from __future__ import annotations

import ast
import doctest
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
# why an example would make no sense
WITHOUT_EXAMPLE = {
    "fenchel.functional.Sparsity": "two numbers, which an attribute of FunctionalRegressor holds",
    "fenchel.report.Report": "takes a second to make: the example of make_report has one",
}


def sections(value: Any) -> set[str]:
    """Headings of the docstring, as numpydoc writes them."""
    text = inspect.getdoc(value) or ""
    return set(re.findall(r"^([A-Z][A-Za-z ]+)\n-{3,}$", text, re.MULTILINE))


def described(value: Any) -> dict[str, str | None]:
    """Names in the section of parameters, and their defaults where these are stated."""
    text = inspect.getdoc(value) or ""
    part = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}\n|\Z)", text, re.S | re.M)
    lines = re.findall(r"^(\w+(?:, \w+)*)(?: : (.*))?$", part[1] if part else "", re.MULTILINE)
    said: dict[str, str | None] = {}
    for names, kind in lines:
        each = names.split(", ")
        stated = re.search(r"default=(\S.*)$", kind)
        defaults = stated[1].split(" and ") if stated else [None] * len(each)
        said |= dict(zip(each, defaults, strict=True))
    return said


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
def test_estimators_list_their_parameters(name: str) -> None:
    """All of them, and with the defaults that they have."""
    if name.startswith(ON_CLUSTERS):
        pytest.skip("its parameters are those of the estimator in memory")
    known, said = inspect.signature(ESTIMATORS[name]).parameters, described(ESTIMATORS[name])
    assert set(said) == set(known)
    for parameter, default in said.items():
        if default is not None:
            assert ast.literal_eval(default) == known[parameter].default, parameter


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


def test_bars_outside_of_code_and_formulas_are_no_substitutions() -> None:
    """Sphinx takes ``|v_i|`` for a substitution that nobody has defined, and builds no pages."""
    seen = []
    for name in documented():
        value = resolved(name)
        for each in (value, *vars(value).values()) if inspect.isclass(value) else (value,):
            text = inspect.getdoc(each) or ""
            text = re.sub(r"``.*?``|`.*?`|(?:>>>|\.\.\.).*?$", "", text, flags=re.MULTILINE)
            text = re.sub(r"^\.\. math::.*?(?=^\S|\Z)", "", text, flags=re.S | re.M)
            bars = re.findall(r"(?<!\S)\|\w(?:[^|\n]*[^|\s])?\|(?=[\s.,;:)])", text)
            seen += [(name, found) for found in bars]
    assert seen == []


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


def has_docstring_of_its_own(value: Any) -> bool:
    """Classes and functions, compiled ones too; constants have the docstring of their type."""
    return inspect.isclass(value) or inspect.isroutine(inspect.unwrap(value))


def test_every_public_class_and_function_has_an_example() -> None:
    """Lines that start with ``>>>``, which run as tests."""
    named = {name: resolved(name) for name in documented() if not name.startswith(ON_CLUSTERS)}
    own = {name: value for name, value in named.items() if has_docstring_of_its_own(value)}
    assert len(own) > 250
    missing = {name for name, value in own.items() if ">>> " not in (value.__doc__ or "")}
    assert missing == set(WITHOUT_EXAMPLE)


def test_examples_of_compiled_functions_run() -> None:
    """The finder of examples sees them, although they are no functions of Python."""
    compiled = [value for name in documented() if hasattr(value := resolved(name), "py_func")]
    assert compiled
    for value in compiled:
        module = inspect.getmodule(value.py_func)
        names = {test.name for test in doctest.DocTestFinder().find(module) if test.examples}
        assert f"{module.__name__}.{value.__name__}" in names
