"""The command that writes a report: a model and a table in, one page out."""

from __future__ import annotations

from typing import Any

from fenchel.cli import checks, commands, data_io, models, places, printing
from fenchel.cli.errors import InputError
from fenchel.cli.warned import recorded, warn
from fenchel.report import Training, make_report


def report(model: str, data: str, *, target: str | None, out: str, quiet: bool) -> None:
    """Measure, draw, write."""
    place = places.check_output(out, "--out", checks.PAGES)
    saved = models.load_any(model)
    table = data_io.read_data(data, saved.missing)
    name = _target(saved, table, target)
    y = data_io.target_values(table, [name])
    messages = list(saved.warnings)
    with saved.used_on(table.label), recorded() as caught:
        if saved.encoder is None:
            X = _rows_of(saved.pipeline, table.frame.drop(columns=[name]), table.label)
        else:
            X, notices = commands.rows(saved, table)
            messages += commands.sentences(notices)
            messages += commands.unused(saved, table.names, table.label, [name])
        X, y, left_out = data_io.with_targets(X, y, table.label)
        messages += left_out
        made = make_report(
            saved.pipeline,
            X,
            y,
            training=_training(saved, name),
            data_name=table.label,
            target_name=name,
            warnings=messages,
        )
    warn([*messages, *caught])
    if place is not None:
        places.write_output(place, made.html.encode("utf-8"))
    if not quiet:
        printing.print_line(f" report written to {place}")


def _target(saved: models.Saved, table: data_io.Table, target: str | None) -> str:
    names = saved.targets_in(table.names, table.label, target, table.target)
    if len(names) != 1:
        raise InputError(f"{saved.path} is of a kind that has no report: use fenchel evaluate")
    return names[0]


def _training(saved: models.Saved, target: str) -> Training | None:
    """The record of the rows of the fit, if there is one and it is of the same target."""
    record = saved.metadata.get("training")
    return None if record is None or saved.targets != [target] else Training.from_dict(record)


def _rows_of(estimator: Any, features: Any, label: str) -> Any:
    """Rows for a model that was not written by fenchel fit: its own columns, if it names them."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return features.to_numpy()
    missing = [str(name) for name in names if name not in features.columns]
    if missing:
        raise InputError(f"{label} lacks {', '.join(missing)}, which the model reads")
    return features[list(names)]
