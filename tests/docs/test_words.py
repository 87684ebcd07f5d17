"""Words of the documentation: alpha is the strength of the regularization, and nothing else."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from docs.test_reference import documented, resolved

ROOT = Path(__file__).parents[2]
# a letter for something that each row, level or coordinate has: dual coefficients, miscoverage
OF_ROWS = re.compile(
    r"(?:α|\\alpha)\s*(?:'|_\{?[ijst]\b)|\(α_i\)|min_\\alpha|1\s*-\s*(?:α|\\alpha)"
)
STRENGTH = re.compile(r"strength|penalty|regulari|strongest|multiplier|\bAs in\b|\bsee\b", re.I)
# of scikit-learn or matplotlib, and documented there
NAMES = {"alpha", "alphas"}


def _functions() -> dict[str, object]:
    """Public classes, their methods, and functions, by their full names."""
    found: dict[str, object] = {}
    for name in documented():
        value = resolved(name)
        found[name] = value
        if inspect.isclass(value):
            public = {key: each for key, each in vars(value).items() if not key.startswith("_")}
            found |= {f"{name}.{key}": each for key, each in public.items() if callable(each)}
    return found


def _parameters(function: object) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def test_parameters_named_alpha_are_strengths() -> None:
    """And say so; no other parameter has alpha in its name."""
    entry = re.compile(r"^(?:\w+, )*alphas?(?:, \w+)* : .*\n((?: {4,}.*\n|\n)+)", re.MULTILINE)
    checked = 0
    for name, function in _functions().items():
        named = [each for each in _parameters(function) if "alpha" in each]
        assert set(named) <= NAMES, f"{name}: {named}"
        for text in entry.findall(inspect.getdoc(function) or "") if named else []:
            checked += 1
            assert STRENGTH.search(text), f"{name}: {text}"
    assert checked > 15


def test_docstrings_have_alpha_for_the_strength_alone() -> None:
    texts = {name: inspect.getdoc(function) or "" for name, function in _functions().items()}
    assert len(texts) > 500
    wrong = {name: OF_ROWS.search(text) for name, text in texts.items() if OF_ROWS.search(text)}
    assert not wrong


@pytest.mark.parametrize(
    "path",
    [
        page
        for page in sorted(ROOT.glob("docs/**/*.md"))
        # what the papers print, in their notation; what the build writes
        if page.name not in {"mathematics.md", "papers.md", "performance.md"}
        and "results" not in page.parts
    ],
    ids=lambda path: path.stem,
)
def test_pages_have_alpha_for_the_strength_alone(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not OF_ROWS.search(text), OF_ROWS.search(text)
