"""Links to what is documented under another of its names, and to the pages of modules."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode


def _entry(env: Any, target: str, module: str) -> tuple[str, str] | None:
    """Page and anchor of the entry with that last name: of several the one of the module."""
    last = target.rpartition(".")[2]
    objects = env.domains["py"].objects
    found = [name for name in objects if name.rpartition(".")[2] == last]
    if not found:
        return None
    best = max(found, key=lambda name: (name.startswith(module), -len(name)))
    return objects[best].docname, objects[best].node_id


def _resolve(app: Sphinx, env: Any, node: Any, contnode: Any) -> nodes.reference | None:
    if node.get("refdomain") != "py":
        return None
    target, module = node["reftarget"], node.get("py:module") or ""
    if target.split(".")[0] in ("sklearn", "object"):
        return None
    page = f"reference/{target.split('.')[1]}" if target.count(".") else ""
    if node["reftype"] == "mod" and page in env.found_docs:
        place: tuple[str, str] | None = (page, "")
    else:
        place = _entry(env, target, module)
    if place is None:
        return None
    return make_refnode(app.builder, node["refdoc"], *place, contnode, target)


def setup(app: Sphinx) -> dict[str, Any]:
    """Look at what Sphinx has not found."""
    app.connect("missing-reference", _resolve)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
