"""Every public name is in the reference."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import fenchel

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
# what is public of a room without being a user's business, or is documented as fenchel.NAME
NOT_ROOMS = {"cli", "files", "repair"}


def public_names() -> dict[str, object]:
    """Full name of everything public: of each room's ``__all__``, and of the package's."""
    names: dict[str, object] = {}
    rooms = [info.name for info in pkgutil.iter_modules(fenchel.__path__)]
    for room in sorted(rooms):
        if room.startswith("_") or room in NOT_ROOMS:
            continue
        module = importlib.import_module(f"fenchel.{room}")
        for name in getattr(module, "__all__", ()):
            names[f"fenchel.{room}.{name}"] = getattr(module, name)
    for name in fenchel.__all__:
        value = getattr(fenchel, name)
        if getattr(value, "__name__", "") != f"fenchel.{name}":
            names[f"fenchel.{name}"] = value
    return names


def documented() -> dict[str, str]:
    """Full name of each entry of the reference, and the page it is on."""
    entries: dict[str, str] = {}
    for page in sorted(REFERENCE.glob("*.rst")):
        module, listing = "", False
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith(".. currentmodule::"):
                module = line.split("::")[1].strip()
            if line and not line.startswith(" "):
                listing = line.startswith(".. autosummary::")
            elif listing and re.fullmatch(r"   [A-Za-z_][\w.]*", line):
                full = f"{module}.{line.strip()}"
                assert full not in entries, f"{full} is on {entries[full]} and on {page.name}"
                entries[full] = page.name
    return entries


def resolved(name: str) -> object:
    """The object of a full name."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            value = getattr(value, part)
        return value
    raise AssertionError(name)


def test_every_public_name_is_in_the_reference() -> None:
    """An entry for the object, under whichever of its names."""
    entries = {id(resolved(name)) for name in documented()}
    missing = [name for name, value in public_names().items() if id(value) not in entries]
    assert not missing, f"not in docs/reference: {missing}"


@pytest.mark.parametrize("name", sorted(documented()))
def test_entries_are_public(name: str) -> None:
    """What is in the reference exists and can be imported from where it is listed."""
    assert resolved(name) is not None


def test_every_page_of_the_reference_is_in_its_index() -> None:
    """A page that is in no index is found by nobody."""
    index = (REFERENCE / "index.md").read_text(encoding="utf-8").split()
    assert {page.stem for page in REFERENCE.glob("*.rst")} <= set(index)
