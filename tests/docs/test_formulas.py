"""Formulas become the MathML that TeX means, where docutils alone reads them otherwise."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

SOURCE = Path(__file__).parents[2] / "docs" / "_extensions" / "mathml.py"


@pytest.fixture(scope="module")
def mathml() -> ModuleType:
    pytest.importorskip("sphinx", reason="Sphinx is not installed")
    spec = importlib.util.spec_from_file_location("mathml", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tree(mathml: ModuleType, text: str, block: bool = False) -> ElementTree.Element:
    return ElementTree.fromstring(mathml.to_mathml(text, block))


def letters(element: ElementTree.Element) -> str:
    return "".join("".join(element.itertext()).split())


@pytest.mark.parametrize("text", [r"\frac12 \|x\|", r"\tfrac12\sum_j x_j", r"\frac 1 2 x"])
def test_a_half_is_a_half(mathml: ModuleType, text: str) -> None:
    top, bottom = tree(mathml, text).find(".//mfrac")
    assert (letters(top), letters(bottom)) == ("1", "2")


def test_fractions_with_braces_are_left(mathml: ModuleType) -> None:
    top, bottom = tree(mathml, r"\frac{12}{5}").find(".//mfrac")
    assert (letters(top), letters(bottom)) == ("12", "5")


@pytest.mark.parametrize("text", [r"\hat R_S(h)", r"\bar\theta_i"])
def test_index_is_beside_a_letter_with_an_accent(mathml: ModuleType, text: str) -> None:
    formula = tree(mathml, text)
    assert formula.find(".//munderover") is None
    over, index = formula.find(".//msub")
    assert over.tag == "mover"
    assert letters(index) in ("S", "i")


def test_bars_stay_as_high_as_letters(mathml: ModuleType) -> None:
    bars = [bar for bar in tree(mathml, r"\|h\|_K^2 + \frac{1}{n}").iter("mo") if bar.text == "‖"]
    assert len(bars) == 2
    assert all(bar.get("stretchy") == "false" for bar in bars)


def test_big_bars_grow(mathml: ModuleType) -> None:
    formula = tree(mathml, r"\Big\| \sum_i x_i \Big\|_F^2")
    bars = [bar for bar in formula.iter("mo") if bar.text == "‖"]
    assert len(bars) == 2
    assert all(bar.get("stretchy") != "false" for bar in bars)
    base = formula.find(".//msubsup")
    assert base is not None
    assert letters(base[0]).startswith("‖")  # the index is that of the whole norm


def test_names_of_functions_and_dots(mathml: ModuleType) -> None:
    assert letters(tree(mathml, r"\exp(-d) \le \xi_1 \ge \dots")).startswith("exp\u2061(−d)≤")


def test_lines_are_aligned(mathml: ModuleType) -> None:
    rows = list(tree(mathml, r"a &= b \\ c &= d", block=True).iter("mtr"))
    assert [letters(row) for row in rows] == ["a=b", "c=d"]


def test_tex_is_kept_as_the_text(mathml: ModuleType) -> None:
    assert tree(mathml, r"a < b").get("alttext") == r"a < b"


def test_unknown_commands_are_refused(mathml: ModuleType) -> None:
    from docutils.utils.math import MathError

    with pytest.raises(MathError, match="nonsense"):
        mathml.to_mathml(r"\nonsense", False)
