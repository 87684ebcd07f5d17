"""HTML from text, which is escaped by a single function unless it is markup."""

from __future__ import annotations

import base64
import hashlib
import html
import math
from collections.abc import Iterable, Sequence

from fenchel.inspection import short_name

_VOID = {"img", "meta"}
_LONGEST = 500


class Html(str):
    """Text that is HTML markup."""

    __slots__ = ()


def escaped(value: object, width: int = _LONGEST) -> Html:
    """Escape text: on one line, printable, with its middle left out if it is long.

    All text of a page passes through this function. Blanks at either end are kept, as they
    separate words from numbers.
    """
    text = str(value)
    before, after = (" " if edge.isspace() else "" for edge in (text[:1], text[1:][-1:]))
    return Html(html.escape(f"{before}{short_name(text, width)}{after}", quote=True))


def element(tag: str, *children: object, **attributes: object) -> Html:
    """Make an element. Children that are not markup and values of attributes are escaped.

    Attributes are named as in HTML, with a trailing underscore for keywords of Python.
    """
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escaped(value, 10**9)}"'
        for name, value in attributes.items()
    )
    if tag in _VOID:
        return Html(f"<{tag}{given}>")
    return Html(f"<{tag}{given}>{joined(children)}</{tag}>")


def joined(children: Iterable[object]) -> Html:
    """Concatenate children."""
    return Html("".join(c if isinstance(c, Html) else escaped(c) for c in children))


def number(value: float, text: str | None = None) -> Html:
    """A number, rounded for display and with all of its digits for machines."""
    plain = float(value)
    if text is None:
        text = f"{plain:.4g}" if math.isfinite(plain) else str(plain)
    return element("data", text.replace("-", "−", 1) if text[:1] == "-" else text, value=plain)


def count(value: int) -> Html:
    """A whole number."""
    return number(value, str(value))


def percent(part: float, digits: int = 1) -> Html:
    """A share, as a percentage."""
    return number(part, f"{100.0 * part:.{digits}f} %")


def table(head: Sequence[object], rows: Iterable[Sequence[object]], caption: object) -> Html:
    """A table that scrolls if the screen is narrow; the first column has row headings."""
    header = element("tr", *(element("th", cell, scope="col") for cell in head))
    body = (
        element("tr", element("th", row[0], scope="row"), *(element("td", c) for c in row[1:]))
        for row in rows
    )
    parts = element("caption", caption), element("thead", header), element("tbody", *body)
    whole = element("table", *parts)
    return element("div", whole, class_="scroll", tabindex=0, role="region", aria_label=caption)


def pairs(rows: Iterable[tuple[object, object]]) -> Html:
    """Name and value pairs."""
    cells = (element("div", element("dt", name), element("dd", fact)) for name, fact in rows)
    return element("dl", *cells)


def picture(svg: bytes, alt: object, caption: object) -> Html:
    """A picture embedded in the page as an image, so that nothing in it can run or load."""
    source = Html("data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii"))
    return element(
        "figure",
        Html(f'<img src="{source}" alt="{escaped(alt)}">'),
        element("figcaption", caption),
    )


def document(title: object, body: Html) -> str:
    """A whole page, which can neither run nor load anything."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode("ascii")
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        Html(f"<style>{STYLE}</style>"),
    )
    page = element("html", head, element("body", body), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


STYLE = """
:root { color-scheme: light; --ink: #1a1a1a; --soft: #4d4d4d; --line: #d0d0d0; --blue: #0072b2; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1rem 4rem; color: var(--ink);
  background: #fff; font: 1rem/1.5 system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem; padding-top: .6rem;
  border-top: 1px solid var(--line); }
p { max-width: 46rem; margin: .5rem 0; }
.lead, figcaption, caption, .note { color: var(--soft); }
ul { margin: .5rem 0; padding-left: 1.3rem; }
li { margin: .3rem 0; max-width: 46rem; }
ul.warnings { list-style: none; padding: 0; }
ul.warnings li { border-left: .3rem solid #d55e00; background: #fdf3ec; padding: .4rem .8rem; }
p.fine { border-left: .3rem solid #009e73; background: #eef8f4; padding: .4rem .8rem; }
dl { margin: .6rem 0; }
dl > div { display: grid; grid-template-columns: 13rem 1fr; gap: 0 1rem; padding: .2rem 0;
  border-bottom: 1px solid #ececec; }
dt { color: var(--soft); }
dd { margin: 0; }
.scroll { overflow-x: auto; margin: .8rem 0; }
.scroll:focus-visible { outline: 2px solid var(--blue); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: .2rem 0; }
th, td { text-align: right; padding: .3rem .8rem; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: normal; white-space: nowrap; }
th:first-child { text-align: left; padding-left: 0; overflow-wrap: anywhere; min-width: 7rem;
  white-space: normal; }
tbody th { font-weight: 500; }
thead th { font-weight: 600; color: var(--soft); }
figure { margin: 1.2rem 0; }
figure img { display: block; width: 100%; max-width: 42rem; height: auto;
  max-height: 30rem; object-fit: contain; object-position: left; }
figcaption { font-size: .92rem; max-width: 42rem; }
@media (max-width: 36rem) {
  h1 { font-size: 1.4rem; }
  dl > div { grid-template-columns: 9rem 1fr; }
  th, td { padding: .3rem .5rem; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  .scroll { overflow: visible; }
  figure, tr, li, dl > div { break-inside: avoid; }
  h2 { break-after: avoid; }
}
"""
