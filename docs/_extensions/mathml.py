"""Formulas as MathML, which browsers draw themselves: no script, no network."""

from __future__ import annotations

import html
import re
from itertools import cycle
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

_LOGGER = logging.getLogger(__name__)
_FENCES, _ACCENTS = set("‖|⟨⟩{}"), set("ˆˉ˜")
_BIG = re.compile(r"\\[bB]igg?([lr]?)(?![a-zA-Z])")


def _spelled(text: str) -> str:
    r"""The formula in words that docutils knows: it reads \frac12 as twelve over what follows."""
    text = re.sub(r"(\\[td]?frac)\s*(\d)\s*(\d)", r"\1{\2}{\3}", text)
    text = re.sub(r"\\dots\b", r"\\ldots", text)
    # \Big comes in pairs here, and a pair that grows by itself is as good
    sides = cycle((r"\\left", r"\\right"))
    named = {"l": r"\\left", "r": r"\\right"}
    return _BIG.sub(lambda match: (named.get(match[1]) or next(sides))[1:], text)


def _mend(parent: ElementTree.Element) -> None:
    """Indices beside letters with accents, not below them; bars as high as letters."""
    last = len(parent) - 1
    around = parent.tag == "mrow" and last > 0 and {parent[0].text, parent[-1].text} <= _FENCES
    for place, child in enumerate(parent):
        _mend(child)
        if child.tag == "mo" and child.text in _FENCES and not (around and place in (0, last)):
            child.attrib |= {"stretchy": "false", "lspace": "0", "rspace": "0"}
        if child.tag == "munderover" and child[2].text in _ACCENTS:
            letter, index, accent = child
            child.tag = "msub"
            over = ElementTree.Element("mover", accent="true")
            over.extend((letter, accent))
            child[:] = [over, index]


def to_mathml(text: str, block: bool) -> str:
    """Return the markup of a formula, with its TeX as the text that is read aloud."""
    # an environment is what docutils knows of alignments
    if block and r"\\" in text and r"\begin" not in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    markup = str(tex2mathml(_spelled(text), as_block=block))
    markup = re.sub(r'\sxmlns="[^"]*"', "", markup).replace("&ApplyFunction;", "\u2061")
    root = ElementTree.fromstring(markup)
    _mend(root)
    root.set("alttext", text)
    return ElementTree.tostring(root, encoding="unicode")


def _convert(node: nodes.Element, block: bool) -> str:
    try:
        return to_mathml(node.astext(), block)
    except (MathError, ElementTree.ParseError) as error:
        _LOGGER.warning("formula not understood: %s (%s)", node.astext(), error, location=node)
        return f"<code>{html.escape(node.astext())}</code>"


def _inline(translator: HTML5Translator, node: nodes.Element) -> None:
    translator.body.append(_convert(node, block=False))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.Element) -> None:
    translator.body.append(f'<div class="formula">{_convert(node, block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer the renderer as ``html_math_renderer = "mathml"``."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
