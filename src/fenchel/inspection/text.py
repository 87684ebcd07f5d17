"""Formatting of names and shares for display."""

from __future__ import annotations

from typing import Any

_NAME_WIDTH = 48  # letters of a name that fit beside an axis


def percent(share: float, digits: int = 6) -> str:
    """Format a level, or with fewer digits a share, as a percentage.

    Parameters
    ----------
    share : float
        The share as a fraction of one.
    digits : int, default=6
        Significant digits.

    Returns
    -------
    str

    Examples
    --------
    >>> from fenchel.inspection import percent
    >>> percent(0.025), percent(1 / 3, digits=3)
    ('2.5 %', '33.3 %')
    """
    return f"{100.0 * share:.{digits}g} %"


def short_name(name: object, width: int = _NAME_WIDTH) -> str:
    """Format a name from data on one printable line, with its middle left out if it is long.

    Parameters
    ----------
    name : object
        Anything with a ``str``.
    width : int, default=48
        Maximum number of characters.

    Returns
    -------
    str

    Examples
    --------
    >>> from fenchel.inspection import short_name
    >>> short_name("income in 1857", 9)
    'inco…1857'
    """
    line = "".join(letter if letter.isprintable() else " " for letter in str(name))
    line = " ".join(line.split())
    if len(line) <= width:
        return line
    tail = (width - 1) // 2
    return f"{line[: width - 1 - tail].rstrip()}…{line[len(line) - tail :].lstrip()}"


def target_name_of(y: Any, output: int = 0) -> str:
    """Return the name of a target, or "y" if it has none.

    Parameters
    ----------
    y : Series, DataFrame or array-like
        Targets.
    output : int, default=0
        Index of the output if there are several.

    Returns
    -------
    str

    Examples
    --------
    >>> from fenchel.inspection import target_name_of
    >>> target_name_of([1.0, 2.0])
    'y'
    """
    if hasattr(y, "columns"):
        return str(y.columns[output])
    name = getattr(y, "name", None)
    return "y" if name is None else str(name)
