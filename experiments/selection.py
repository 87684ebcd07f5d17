"""The least cross-validated loss of a grid, without the fits that can't change which it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

Cell = TypeVar("Cell")


def least(
    groups: Sequence[Collection[Cell]],
    folds: int,
    losses: Callable[[int, list[Cell]], Sequence[float]],
) -> list[Cell]:
    """The cell of the least sum of losses over the folds, for each of several groups of cells.

    ``losses(k, cells)`` are those of some cells on fold k, which come in the order of the groups;
    they are not negative. All cells see the first fold. What is best there sees the others too,
    and a cell whose sum so far is above that whole sum is left out of the folds to come: its own
    whole sum can't be less.
    """
    cells = list(dict.fromkeys(cell for group in groups for cell in group))
    total = dict(zip(cells, losses(0, cells), strict=True))

    def add(k: int, wanted: list[Cell]) -> None:
        for cell, loss in zip(wanted, losses(k, wanted) if wanted else (), strict=True):
            total[cell] += loss

    first = list(dict.fromkeys(min(group, key=total.__getitem__) for group in groups))
    for k in range(1, folds):
        add(k, first)
    bounds = [min(total[cell] for cell in first if cell in group) for group in groups]

    def may_be_least(cell: Cell) -> bool:
        return any(
            cell in group and total[cell] <= bound
            for group, bound in zip(groups, bounds, strict=True)
        )

    for k in range(1, folds):
        add(k, [cell for cell in cells if cell not in first and may_be_least(cell)])
    return [min(group, key=total.__getitem__) for group in groups]
