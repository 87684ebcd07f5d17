"""What a reader gets of the page of a report, and rows to report on."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pandas as pd

from fenchel.report import make_report


class Page(HTMLParser):
    """Tables by their captions, facts by name, lists, pictures: what a reader gets."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, dict[str, list[list[float]]]] = {}
        self.facts: dict[str, str] = {}
        self.sections: dict[str, str] = {}
        self.numbers: dict[str, list[float]] = {}
        self.items: list[str] = []
        self.images: list[dict[str, str]] = []
        self.tags: list[str] = []
        self.title = ""
        self._open: list[str] = []
        self._text = ""
        self._section = self._caption = self._row = self._term = ""
        self.feed(text)
        assert not self._open, f"left open: {self._open}"

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append(tag)
        if tag not in ("meta", "img"):
            self._open.append(tag)
        if tag == "h2":
            self._section = given["id"]
        if tag == "img":
            self.images.append(given)
        if tag == "data":
            value = float(given["value"])
            self.numbers.setdefault(self._section, []).append(value)
            if "td" in self._open:
                self.tables[self._caption][self._row][-1].append(value)
        if tag == "td":
            self.tables[self._caption][self._row].append([])
        if tag in ("caption", "th", "dt", "dd", "li", "title"):
            self._text = ""

    def handle_endtag(self, tag):
        assert self._open.pop() == tag
        if tag == "caption":
            self._caption = self._text
            self.tables[self._caption] = {}
        if tag == "th" and "tbody" in self._open:
            self._row = self._text
            self.tables[self._caption][self._row] = []
        if tag == "dt":
            self._term = self._text
        if tag == "dd":
            self.facts[self._term] = self._text
        if tag == "li":
            self.items.append(self._text)
        if tag == "title":
            self.title = self._text

    def handle_data(self, data):
        self._text += data
        if "style" not in self._open:
            self.sections[self._section] = self.sections.get(self._section, "") + data


def measured(*arguments, **options):
    """A report without pictures, which take most of its time."""
    return make_report(*arguments, draw=False, **options)


def table(page, start):
    (found,) = [rows for caption, rows in page.tables.items() if caption.startswith(start)]
    return found


def draw(n, seed):
    random = np.random.default_rng(seed)
    X = pd.DataFrame({"dose": random.uniform(0, 3, n), "age": random.uniform(20, 80, n)})
    noise = (0.2 + X["dose"]) * random.standard_normal(n)
    return X, pd.Series(np.sin(X["dose"]) + noise, name="effect")
