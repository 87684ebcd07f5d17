"""Excerpts in the results of a search, without a server too.

Sphinx fetches each page that was found, which browsers refuse where pages are files. The texts are
in a script as well, which the search reads only then.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

_ARTICLE = re.compile(r'<article class="bd-article"[^>]*>(.*)</article>', re.DOTALL)
# sections stay, as a search may lead to one of them
_OTHER_TAGS = re.compile(
    r'<a class="headerlink".*?</a>|<math.*?</math>|<(?!section\b|/section\b)[^>]*>', re.DOTALL
)


def text_of(page: str) -> str:
    """The text of a page and its sections, without other tags."""
    article = _ARTICLE.search(page)
    return re.sub(r"\s+", " ", _OTHER_TAGS.sub("", article[1])) if article else ""


def write_texts(app: Sphinx, exception: Exception | None) -> None:
    """Write the texts of all pages for searches without a server."""
    if exception is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir)
    texts = {
        name: text_of((folder / f"{name}.html").read_text(encoding="utf-8"))
        for name in sorted(app.env.found_docs)
    }
    script = f"const TEXTS = {json.dumps(texts, ensure_ascii=False)};\n"
    (folder / "_static" / "texts.js").write_text(script, encoding="utf-8")


def _load(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    if page == "search":
        app.add_js_file("excerpts.js")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the texts last, and let the page of the search read them."""
    app.connect("html-page-context", _load)
    app.connect("build-finished", write_texts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
