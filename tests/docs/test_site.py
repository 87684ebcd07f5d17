"""The built site: links resolve, pictures are there, nothing is fetched from elsewhere.

The folder is build/docs, where ``make docs`` writes, or what FENCHEL_SITE names.
"""

from __future__ import annotations

import functools
import os
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
SITE = Path(os.environ.get("FENCHEL_SITE", ROOT / "build" / "docs"))
BUILT = (SITE / "searchindex.js").exists()
pytestmark = pytest.mark.skipif(not BUILT, reason="the site has not been built: make docs")
MAIN = (
    "index",
    "choose",
    "convert",
    "performance",
    "results/index",
    "reference/index",
    "guide/index",
)
LOADED = {("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src")}


class _Page(HTMLParser):
    """Links, anchors and what a browser loads by itself, of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.images: list[dict[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "img":
            self.images.append(values)
        if tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(values["href"])
        self.loaded += [value for name, value in values.items() if (tag, name) in LOADED]


@functools.cache
def read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


@functools.cache
def pages() -> list[Path]:
    return [path for path in sorted(SITE.glob("**/*.html")) if "_static" not in path.parts]


def broken(page: Path, link: str) -> bool:
    """Whether a link of a page leads nowhere; links to other sites are not followed."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return False
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target = target / "index.html"
    if not target.exists():
        return True
    if not parts.fragment or target.suffix != ".html":
        return False
    return unquote(parts.fragment) not in read(target).anchors


def test_links_inside_the_site_resolve() -> None:
    wrong = [
        f"{page.relative_to(SITE)}: {link}"
        for page in pages()
        for link in {*read(page).links, *read(page).loaded}
        if broken(page, link)
    ]
    assert not wrong, "\n".join(wrong[:20])


def test_nothing_is_loaded_from_elsewhere() -> None:
    """Pages work without network: scripts, styles, fonts and pictures are the site's own."""
    for page in pages():
        foreign = [link for link in read(page).loaded if urlsplit(link).netloc]
        assert not foreign, f"{page.relative_to(SITE)}: {foreign}"
    for style in SITE.glob("_static/**/*.css"):
        text = style.read_text(encoding="utf-8")
        assert "url(http" not in text, style
        assert '@import "http' not in text, style


def test_pictures_have_a_text() -> None:
    for page in pages():
        for image in read(page).images:
            # thumbnails stand above the title of their example, and add nothing to it
            decorative = image["src"].endswith("_thumb.png") and "alt" in image
            assert decorative or image.get("alt"), f"{page.relative_to(SITE)}: {image}"


def test_examples_have_pictures_that_are_not_empty() -> None:
    """Each example that was run shows one; and an example was run for each that has its data."""
    matplotlib_image = pytest.importorskip(
        "matplotlib.image", reason="Matplotlib is not installed"
    )
    shown = sorted(SITE.glob("gallery/*/plot_*.html"))
    if not shown:
        pytest.skip("the site was built without the gallery")
    for page in shown:
        pictures = sorted((SITE / "_images").glob(f"sphx_glr_{page.stem}_0*.png"))
        assert pictures, f"{page.stem} shows no picture"
        for picture in pictures:
            pixels = matplotlib_image.imread(picture)[..., :3]
            assert pixels.shape[0] > 200, picture
            assert pixels.shape[1] > 300, picture
            assert (pixels.min(axis=2) < 0.9).mean() > 0.005, f"{picture.name} is empty"
            assert pixels.std() > 0.02, f"{picture.name} is empty"
    expected = {path.stem for path in (ROOT / "examples").glob("*/plot_*.py")}
    left_out = expected - {page.stem for page in shown}
    needing = {
        path.stem
        for path in (ROOT / "examples").glob("*/plot_*.py")
        if "# needs the data set" in path.read_text(encoding="utf-8")
    }
    assert left_out <= needing, f"not in the gallery: {left_out - needing}"


@pytest.mark.parametrize(
    "page",
    [
        "index",
        "choose",
        "convert",
        "performance",
        "results/index",
        "reference/index",
        "guide/index",
    ],
)
def test_main_pages_are_there(page: str) -> None:
    assert (SITE / f"{page}.html").stat().st_size > 5000


def test_formulas_are_markup() -> None:
    """MathML: no TeX is left for a script to set."""
    text = (SITE / "guide" / "losses.html").read_text(encoding="utf-8")
    assert text.count("<math ") > 20
    assert "MathJax" not in text
    assert "katex" not in text.lower()
