"""Attacks: many random or hostile uses of the library, and an independent judge of each.

Every module of this folder defines ``attack(count, seed)``, which makes ``count`` tries and
returns an :class:`Outcome`, and two numbers: ``IN_CI``, the tries in the test suite, and
``IN_FULL``, those of ``make attack``; where the tries of the test suite are not divided into eight
tests, ``SHARES`` is their number. The first of several is in ``make test``, the others
are slow. The seed of a run is that of the week.
"""

from __future__ import annotations

import datetime
import importlib
import pkgutil
from collections import Counter
from dataclasses import dataclass, field
from types import ModuleType


@dataclass
class Outcome:
    """What the tries of an attack came to."""

    counts: Counter[str] = field(default_factory=Counter)
    """How many tries ended in which way."""
    failures: list[str] = field(default_factory=list)
    """One line for each try that ended as none may, enough to repeat it."""

    @property
    def tried(self) -> int:
        """Number of tries."""
        return sum(self.counts.values())


def attacks() -> dict[str, ModuleType]:
    """Every attack by the name of its module."""
    modules = (each.name for each in pkgutil.iter_modules(__path__))
    names = sorted(each for each in modules if not each.startswith(("_", "test_")))
    return {name: importlib.import_module(f"{__name__}.{name}") for name in names}


def seed_of_the_week() -> int:
    """Year and week as one number: a new one each week."""
    year, week, _ = datetime.datetime.now(tz=datetime.UTC).isocalendar()
    return 100 * year + week
