"""Long names and calls in the text, which narrow screens may only split where a reader would."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

# about what a cell of a table holds on a telephone
_LONG = re.compile(r'(?<=<span class="pre">)[^<]{28,}(?=</span>)')
_PLACES = re.compile(r"(?<=[.(\[=,])(?=[\w&(\[])")


def with_places(body: str) -> str:
    """Mark where code that is longer than a line may be split: after dots, brackets and commas."""
    return _LONG.sub(lambda match: _PLACES.sub("<wbr/>", match[0]), body)


def _mark(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    if "body" in context:
        context["body"] = with_places(context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Mark each page as it is written."""
    app.connect("html-page-context", _mark)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
