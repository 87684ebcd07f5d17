"""Sphinx's settings; ``make docs`` builds the site into build/docs."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version as version_of
from importlib.resources import files
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))
sys.path.insert(0, str(Path(__file__).parent.parent))

from gallery import examples_to_leave_out, write_thumbnails

os.environ.setdefault("OMP_NUM_THREADS", "1")
DOCS = Path(__file__).parent
ROOT = DOCS.parent
project = "fenchel"
author = "The fenchel developers"
release = version = version_of("fenchel")
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
    # in _extensions
    "docstrings",
    "excerpts",
    "mathml",
    "names",
    "pages",
    "papers",
    "references",
]
fenchel_root = str(ROOT)
exclude_patterns = ["_extensions", "_templates"]
templates_path = ["_templates"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}

# Markdown
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

# the reference
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# the gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": examples_to_leave_out(ROOT / "examples", DOCS / "gallery"),
    # folders that are not named come last
    "subsection_order": [
        *(f"../examples/{room}" for room in ("levels", "regression", "linear", "large")),
        "*",
    ],
    "capture_repr": (),
    "reset_modules": ("matplotlib", "gallery.set_style"),
    "image_scrapers": ("gallery.save_pictures",),
    "thumbnail_size": (600, 420),
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,  # that page wants scripts from elsewhere
    "min_reported_time": 10_000,
    "within_subsection_order": "FileNameSortKey",
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "remove_config_comments": True,
}

# the pages
html_theme = "pydata_sphinx_theme"
html_title = "fenchel"
# the font of formulas, so that they look the same where no such font is installed
html_static_path = ["_static", str(files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf")]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    # pages of the reference have formulas that need the width
    "secondary_sidebar_items": {
        **{key: ["page-toc"] for key in ("*", "guide/*", "extend/*", "gallery/**", "reference/*")},
        **{key: [] for key in ("convert", "index")},
    },
    "header_links_before_dropdown": 5,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "tutorial": [], "choose": [], "convert": [], "performance": []}
copyright = "The fenchel developers, BSD-3-Clause"


def _skip_foreign(
    app: Any, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out what a class has from scikit-learn or NumPy: it is documented there.

    And ``constraints``, the declaration behind what the parameters say.
    """
    if name == "constraints":
        return True
    home = getattr(obj, "__module__", None) or getattr(
        getattr(obj, "fget", None), "__module__", None
    )
    return True if isinstance(home, str) and not home.startswith("fenchel") else None


def setup(app: Any) -> None:
    """Connect what is above."""
    app.connect("autodoc-skip-member", _skip_foreign)
    app.connect("builder-inited", write_thumbnails, priority=600)  # after the gallery's 500
