"""What can be said of a command before anything heavy is imported, so that it is said at once."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from fenchel.cli.errors import InputError
from fenchel.cli.places import check_not_read, check_output, place_of
from fenchel.cli.roles import Roles, heading_of
from fenchel.cli.settings import (
    CURVES,
    DENSITY,
    NORMAL,
    OF_GROUPS,
    RIDGE,
    SUPPORT,
    Settings,
)

MODEL_FILES = (".skops",)
PICTURES = (".png", ".pdf", ".svg")
PREDICTIONS = (".csv",)
PAGES = (".html", ".htm")
CLASH = "--ids: {!r} is the name of a column of predictions"
_WRITTEN = {
    RIDGE: ("prediction",),
    SUPPORT: ("prediction",),
    NORMAL: ("mean", "std"),
    DENSITY: ("density",),
}
"""Columns of predictions; those of levels, such as q0.5, are looked at when there are some."""


def before_fit(
    data: str, roles: Roles, settings: Settings, *, out: str | None, plot: str | None
) -> None:
    """Options, places and names of columns."""
    if check_output(out, "--out", MODEL_FILES) is not None:
        check_skops()
    if check_output(plot, "--plot", PICTURES) is not None:
        if find_spec("matplotlib") is None:
            raise InputError("--plot needs matplotlib: pip install 'fenchel[plot]'")
        if settings.model in (DENSITY, CURVES):
            raise InputError(f"--plot has no meaning for --model {settings.model}")
    settings.check()
    _check_groups(roles, settings)
    heading = heading_of(data)
    for path, option in ((out, "--out"), (plot, "--plot")):
        check_not_read(path, option, table=data)
    if heading.names is not None:
        check_roles(roles, settings.model, heading.names, heading.label, None)
        _check_ids(roles.names("ids", heading.names, heading.label), settings)


def check_roles(
    roles: Roles, model: str, names: list[str], label: str, own: str | None
) -> tuple[list[str], list[str], list[str]]:
    """Targets and features of a fit, and what is to be said of other columns."""
    if model == DENSITY:
        if roles.target is not None:
            raise InputError(
                "--target has no meaning for --model density: --columns names the columns whose "
                "density is wanted"
            )
        return (
            [],
            roles.features(names, [], label),
            _of_labels(roles.labels(names, [], label), label),
        )
    targets = roles.targets(names, label, own, many=model == CURVES)
    if model == CURVES and len(targets) < 2:
        raise InputError(
            "--model curves needs as --target the columns of the curve in their order, with "
            "commas between them"
        )
    said = _of_labels(roles.labels(names, targets, label), label)
    return targets, roles.features(names, targets, label), said


def _check_ids(ids: list[str], settings: Settings) -> None:
    """Refuse columns beside predictions that have the name of one of these."""
    written = _WRITTEN.get(settings.model, ())
    if settings.coverage is not None:
        written = (*written, "lower", "upper")
    for name in ids:
        if name in written:
            raise InputError(CLASH.format(name))


def _check_groups(roles: Roles, settings: Settings) -> None:
    """Refuse groups for models that make no use of them."""
    if roles.groups and (settings.model not in OF_GROUPS or settings.non_crossing):
        other = "--non-crossing" if settings.non_crossing else f"--model {settings.model}"
        raise InputError(f"--groups has no meaning for {other}")


def _of_labels(labels: list[str], label: str) -> list[str]:
    """A sentence on a column that is taken for the labels of rows."""
    return [
        f"the first column of {label} has no name and is not used, as it is taken for labels of "
        f"rows: list it in --columns as {name!r} to use it, or in --drop to be told no more"
        for name in labels
    ]


def before_using(model: str, data: str, *, out: str | None, endings: tuple[str, ...]) -> None:
    """A model file, a table, and a place."""
    check_output(out, "--out", endings)
    check_skops()
    place = place_of(model, "MODEL")
    if place.is_dir():
        raise InputError(f"{model} is a folder, and a model file is needed")
    if not Path(model).is_file():
        raise InputError(f"there is no model file {model}")
    heading_of(data)
    check_not_read(out, "--out", table=data, model=model)


def check_skops() -> None:
    """Say that skops is missing before any work is done."""
    if find_spec("skops") is None or find_spec("skops.io") is None:
        raise InputError("a model file needs skops: pip install 'fenchel[io]'")
