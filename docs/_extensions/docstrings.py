"""Small repairs to docstrings on their way into the reference."""

from __future__ import annotations

import inspect
import re
from typing import Any

from sphinx.application import Sphinx

# left as they are: literals, roles, strong text, doctests; then names such as dual_coef_, which
# would be read as references
_NAMES = re.compile(
    r"(``.+?``|`[^`]+`_*|\*\*[^*]+\*\*|^\s*(?:>>>|\.\.\.).*?$)"
    r"|(?<![\\\w`*.])((?:[A-Za-z]\w*\.)*[a-z]\w*_)(?![\w{`(^\\*])",
    re.DOTALL | re.MULTILINE,
)


def _as_code(match: re.Match[str]) -> str:
    """The name as a literal, which must not touch a bracket or a word: else escaped."""
    if match[1]:
        return match[1]
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
    apart = (not before or before in " \n([{\"'-/") and (not after or after in " \n.,;:)]}\"'-/!?")
    return f"``{match[2]}``" if apart else match[2].replace("_", r"\_")


def _join(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Join lines that a backslash continues, before numpydoc reads them.

    In a raw docstring the continued part is all the way to the left, and everything else
    would be a quotation.
    """
    docstring = getattr(obj, "__doc__", None)
    if isinstance(docstring, str) and "\\\n" in docstring:
        joined = re.sub(r"(?<!\\)\\\n\s*", "", docstring)
        lines[:] = [*inspect.cleandoc(joined).splitlines(), ""]


def _literal(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Set names that end in an underscore as code, after numpydoc has read them."""
    lines[:] = _NAMES.sub(_as_code, "\n".join(lines)).split("\n")


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect both, around numpydoc, whose priority is 500."""
    app.connect("autodoc-process-docstring", _join, priority=400)
    app.connect("autodoc-process-docstring", _literal, priority=600)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
