"""Descriptions of how columns were encoded, and of unexpected content in new rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.compose import ColumnTransformer

from fenchel.tables.parts import (
    CATEGORIES,
    CYCLES,
    FLAGS,
    NUMBERED,
    NUMBERS,
    TEXTS,
    Kinds,
    Part,
    counted,
    key,
)

AS_IT_IS, LEFT_OUT = "number", "left out: "
_SHOWN = 3  # labels in a notice


class Notice(NamedTuple):
    """A note on some rows: how many have some property, and how they are encoded.

    If the number of the ``first`` row is known, the sentence names it ("row 3 is ...").
    """

    n_rows: int
    what: str
    outcome: str
    labels: tuple[str, ...] = ()
    first: int | None = None

    def __str__(self) -> str:
        shown = f" ({', '.join(self.labels[:_SHOWN])})" if self.labels else ""
        return f"{self._rows()} {self.what}{shown}: {self.outcome}"

    def _rows(self) -> str:
        if self.first is None:
            return "1 row has" if self.n_rows == 1 else f"{self.n_rows} rows have"
        several = f"{self.n_rows} rows, the first of them {self.first}, are"
        return f"row {self.first} is" if self.n_rows == 1 else several

    def and_of(self, later: Notice) -> Notice:
        """The same note for these rows together with later ones."""
        labels = tuple(dict.fromkeys(self.labels + later.labels))[:_SHOWN]
        return self._replace(n_rows=self.n_rows + later.n_rows, labels=labels)


def joined(notices: Iterable[Notice]) -> list[Notice]:
    """Merge notes on several blocks of rows into one for each subject."""
    found: dict[tuple[str, str], Notice] = {}
    for new in notices:
        about = new.what, new.outcome
        found[about] = found[about].and_of(new) if about in found else new
    return list(found.values())


def label_of(label: str | None) -> str:
    """Name of a category; that of missing values if it is None."""
    return "missing" if label is None else label


def described(columns: ColumnTransformer, parts: list[Part], kinds: Kinds) -> dict[str, str]:
    """One line for each column of the table that says how it was encoded."""
    lines = {name: f"{LEFT_OUT}{reason}" for name, reason in kinds.left_out.items()}
    for part, encoder, place in _places(columns, parts):
        lines[part.source] = _line(part, encoder, place, kinds.dates.get(part.source))
    for name, _, keys in columns.transformers_:
        if name == NUMBERED:
            source = next(part.source for k, part in enumerate(parts) if key(k) == keys[0])
            lines[source] += "; numbered in another column"
    return lines


def _line(part: Part, encoder: Any, place: int, calendar: dict[str, Any] | None) -> str:
    n_holes = int(_is_hole(part).sum())
    if part.block == TEXTS:
        n_values = len(set(part.values[~_is_hole(part)].tolist()))
        line = f"words of {counted(n_values, 'value')}, by their letters in "
        line += counted(encoder.n_components_, "column")
        return line + (
            f"; {counted(n_holes, 'missing value')} read as an empty word" if n_holes else ""
        )
    if part.block == CATEGORIES:
        n_values = sum(label is not None for label in encoder.categories_[place])
        line = f"category of {counted(n_values, 'value')}, a column for each; "
        line += "unseen values get 0 in all"
        return line + (
            f"; {counted(n_holes, 'missing value')} as one more category" if n_holes else ""
        )
    value = encoder.statistics_[place]
    if calendar is not None:
        line, filled = _date_line(calendar), "the median day"
    elif part.block == FLAGS:
        line, filled = "true or false, as 1 and 0", str(bool(value)).lower()
    else:
        line, filled = AS_IT_IS, f"the median {value:.6g}"
    marked = (
        f"; {counted(n_holes, 'missing value')} filled with {filled} and marked in another column"
    )
    return line + (marked if n_holes else "")


def _date_line(calendar: dict[str, Any]) -> str:
    written = f" ({calendar['format']})" if calendar["format"] else ""
    day = calendar["origin"].removesuffix("T00:00:00")
    return f"date{written}, as {', '.join([f'days since {day}', *calendar['cycles']])}"


def _is_hole(part: Part) -> npt.NDArray[np.bool_]:
    if part.block == CATEGORIES:
        return np.array([word is None for word in part.values])
    if part.block == TEXTS:
        return np.array([word == "" for word in part.values])
    return np.isnan(part.values)


def notices_of(columns: ColumnTransformer, parts: list[Part]) -> list[Notice]:
    """A note for each column with text or missing values that the fit has not seen."""
    found = []
    for part, encoder, place in _places(columns, parts):
        n_holes = int(_is_hole(part).sum())
        if part.block == CATEGORIES:
            known = set(encoder.categories_[place])
            new = [word for word in part.values if word is not None and word not in known]
            if new:
                what = f"labels of {part.source} that the model has not seen"
                outcome = "they get 0 in the columns of all categories"
                found.append(Notice(len(new), what, outcome, tuple(dict.fromkeys(new))[:_SHOWN]))
            filled = None if None in known else "they get 0 in the columns of all its categories"
        elif part.block in (NUMBERS, FLAGS):
            typical = "median" if part.block == NUMBERS else "more frequent value"
            seen = place in encoder.indicator_.features_
            filled = None if seen else f"they are given its {typical}"
        else:
            filled = None
        if n_holes and filled is not None:
            what = f"no {part.source}, which every row of the fit has"
            found.append(Notice(n_holes, what, filled))
    return found


def _places(columns: ColumnTransformer, parts: list[Part]) -> Iterator[tuple[Part, Any, int]]:
    """Each part with its encoder and its index among the inputs of it, except for cycles.

    Raises RuntimeError for a part without one, in a model file that was changed.
    """
    encoders = {name: (encoder, keys) for name, encoder, keys in columns.transformers_}
    for k, part in enumerate(parts):
        if part.block == CYCLES:
            continue
        name = key(k) if part.block == TEXTS else str(part.block)
        encoder, keys = encoders.get(name, (None, ()))
        if key(k) not in keys:
            raise RuntimeError(f"its encoder is damaged: nothing encodes {part.source}")
        yield part, encoder, 0 if part.block == TEXTS else list(keys).index(key(k))
