"""What each command does; their options are in ``app``."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fenchel._sentences import listed
from fenchel._threads import without_warnings
from fenchel.cli import checks, data_io, fitting, measures, models, on_disk, places, printing
from fenchel.cli.errors import InputError, as_input_errors, one_line
from fenchel.cli.progress import shown
from fenchel.cli.roles import Roles
from fenchel.cli.settings import DENSITY, EXPECTILE, Settings
from fenchel.cli.warned import warn
from fenchel.datasets import list_datasets
from fenchel.inspection import certified_model, importances_of, levels_of
from fenchel.report import Training
from fenchel.tables.describing import Notice, joined

_MANY_ROWS, _MANY_FREE_ROWS = 20_000, 5000  # those of expectiles are all in the last system
_HINT = (
    "{} rows may take minutes with a rough kernel: --rank 500 bounds the time, and the relative "
    "gap then says how far the training objective is from its optimum"
)


@dataclass(frozen=True)
class Outputs:
    """Where things go, and what is printed."""

    out: str | None = None
    plot: str | None = None
    plot_feature: str | None = None
    as_json: bool = False
    quiet: bool = False

    def places(self) -> tuple[Path | None, Path | None]:
        """Of the model and of the picture."""
        place = places.check_output(self.out, "--out", checks.MODEL_FILES)
        return place, places.check_output(self.plot, "--plot", checks.PICTURES)


def fit(data: str, roles: Roles, settings: Settings, outputs: Outputs) -> None:
    """Fit, report, save, draw."""
    place, picture = outputs.places()
    if outputs.plot_feature is not None and picture is None:
        raise InputError("--plot-feature needs --plot, the file to draw into")
    if on_disk.is_large(Path(data)):
        fit_from_disk(Path(data), roles, settings, outputs)
        return
    table = data_io.read_data(data, roles.markers)
    known = table.names, table.label, table.target
    targets, names, said = checks.check_roles(roles, settings.model, *known)
    used = roles.record(table.names, targets, names, table.label)
    y = data_io.target_values(table, targets, of_fit=True)
    X, columns = data_io.features_of(table, names)
    groups = None
    if settings.model == DENSITY:
        data_io.check_numbers(table, names)
        X, left_out = data_io.whole_rows(X, columns.names, table.label)
    else:
        groups = data_io.groups_of(table, roles.names("groups", table.names, table.label), y)
        X, y, left_out = data_io.with_targets(X, y, table.label)
        data_io.check_formats(X, columns, table.label)
    if picture is not None:
        _check_plot_feature(outputs.plot_feature, columns)
    hidden = outputs.quiet or outputs.as_json
    many = _MANY_FREE_ROWS if settings.model == EXPECTILE else _MANY_ROWS
    hint = _HINT.format(len(X)) if settings.is_rough and len(X) >= many else ""
    with shown(hidden=hidden, max_time=settings.max_time, hint=hint) as show:
        fitted = fitting.fit(settings, X, y, show, groups=groups)
    fitted = replace(fitted, warnings=[*said, *left_out, *fitted.warnings])
    # an encoder reads of the rows that are left columns that it would leave out of all
    X = X[[name for name in X if name in {*columns.names, *fitted.columns.names}]]
    with _after_the_fit(table.label):
        measured = measures.measure(fitted.pipeline, X, y)
    with places.noting_files(place, picture):
        if place is not None:
            training = None
            if settings.model != DENSITY:
                training = Training.of(fitted.pipeline, X, y, table.label)
            models.save_model(fitted, used, place, training)
        if picture is not None:
            draw(fitted.pipeline, X, y, picture, outputs.plot_feature, columns.numeric)
        told(fitted, measured, table.label, targets, outputs)


def fit_from_disk(path: Path, roles: Roles, settings: Settings, outputs: Outputs) -> None:
    """The same for a table that is too large for memory."""
    place, _ = outputs.places()
    on_disk.check_fit(path, settings, outputs.plot, roles.groups)
    known = on_disk.names_in(path)
    (target,), names, said = checks.check_roles(roles, settings.model, known, path.name, None)
    used = roles.record(known, [target], names, path.name)
    hidden = outputs.quiet or outputs.as_json
    with shown(hidden=hidden, max_time=settings.max_time) as show:
        rows_known = on_disk.rows_of(path, names, target, roles.markers, show)
        fitted = on_disk.fit(settings, rows_known, target, show)
        fitted = replace(fitted, warnings=[*said, *fitted.warnings])
        with _after_the_fit(path.name):
            measured = on_disk.measured(fitted.pipeline, rows_known, show)
    with places.noting_files(place):
        if place is not None:
            models.save_model(fitted, used, place, None)
        told(fitted, measured, path.name, [target], outputs)


@contextlib.contextmanager
def _after_the_fit(label: str) -> Iterator[None]:
    """What fails is said to be the model's; of infinite intervals the fit has warned already."""
    with (
        as_input_errors(f"the model fails on the rows of {label}: "),
        without_warnings(UserWarning),
    ):
        yield


def told(
    fitted: fitting.Fit,
    measured: measures.Measures,
    label: str,
    targets: list[str],
    outputs: Outputs,
) -> None:
    """Print what became of a fit; one that the user has ended ends the command as well."""
    place, picture = outputs.places()
    warn(fitted.warnings)
    if outputs.as_json:
        record = printing.fit_record(fitted, measured, label, targets)
        printing.print_json({**record, "out": outputs.out, "plot": outputs.plot})
    elif not outputs.quiet:
        n_files = (place is not None) + (picture is not None)
        printing.print_fit(fitted, measured, label, targets, n_files)
        for what, path in (("model", place), ("picture", picture)):
            if path is not None:
                printing.print_line(f" {what} written to {path}")
    if fitted.interrupted:
        gap = fitted.model.certificate_.relative_gap
        interrupt = KeyboardInterrupt()
        kept = "was kept" if place is not None else "was shown, and not kept without --out"
        interrupt.add_note(f"the best model so far, at a relative gap of {gap:.1e}, {kept}")
        raise interrupt


def predict(
    model: str, data: str, *, out: str | None, interval: float | None, ids: tuple[str, ...]
) -> None:
    """Predict the rows of a table."""
    place = places.check_output(out, "--out", checks.PREDICTIONS)
    saved = models.load_model(model)
    _check_interval(saved, interval)
    if on_disk.is_large(Path(data)):
        predict_from_disk(saved, Path(data), place, interval, ids)
        return
    table = data_io.read_data(data, saved.missing)
    kept, lacking = _ids(saved, table.names, table.label, ids)
    frame, notices = predicted(saved, table, interval, kept)
    told_of = [*sentences(notices), *unused(saved, table.names, table.label, kept), *lacking]
    warn([*saved.warnings, *told_of])
    text = frame.to_csv(index=False, lineterminator="\n")
    if place is None:
        sys.stdout.write(text)
    else:
        places.write_output(place, text.encode())


def predict_from_disk(
    saved: models.Saved,
    path: Path,
    place: Path | None,
    interval: float | None,
    ids: tuple[str, ...],
) -> None:
    """The same, block by block."""
    encoder: Any = saved.encoder
    columns = data_io.Columns(encoder.kinds_)
    known = on_disk.names_in(path)
    beside, lacking = _ids(saved, known, path.name, ids)
    read = [name for name in known if name in columns.names]
    read += [name for name in beside if name not in read]
    written = [name for name in read if name in {*columns.words, *beside}]
    messages: list[Notice] = []
    n_rows = on_disk.n_rows_in(path)
    with shown(hidden=False) as show, places.written_whole(place) as file:
        for start, table in on_disk.blocks(path, read, written, saved.missing):
            frame, new = predicted(saved, table, interval, beside)
            frame.to_csv(file, index=False, header=start == 0, lineterminator="\n")
            messages = joined([*messages, *new])
            done = start + len(frame)
            show(f"predicted {done} rows", done, n_rows)
    told_of = [*sentences(messages), *unused(saved, known, path.name, beside), *lacking]
    warn([*saved.warnings, *told_of])


def predicted(
    saved: models.Saved, table: data_io.Table, interval: float | None, kept: list[str]
) -> tuple[pd.DataFrame, list[Notice]]:
    """Predictions for the rows of a table after the columns ``kept``, and what is to be said."""
    with saved.used_on(table.label):
        X, messages = rows(saved, table)
        encoded = saved.pipeline[:-1].transform(X)
    ends = None if interval is None else _ends(saved, encoded, interval)
    with saved.used_on(table.label):
        columns = measures.predictions(saved.pipeline, encoded, saved.targets, ends)
    if saved.has_density:
        gaps = data_io.has_gaps(X)
        columns["density"] = np.where(gaps, np.nan, columns["density"])
        what = f"without a density in {table.label}"
        messages += data_io.notices(X, gaps, what, "a value is missing")
    frame, written = pd.DataFrame(columns), table.as_written(kept)
    for name in reversed(kept):
        if name in frame:
            raise InputError(checks.CLASH.format(name))
        frame.insert(0, name, written[name].reset_index(drop=True))
    return frame, messages


def _ends(saved: models.Saved, encoded: Any, interval: float) -> Any:
    """Lower and upper ends of the intervals of a coverage, (n, 2)."""
    try:
        return saved.model.predict_interval(encoded, interval)
    except ValueError as error:
        told = one_line(error).replace("coverage=", "--interval ")
        raise InputError(f"{told}{_other_intervals(saved, interval)}") from error


def _ids(
    saved: models.Saved, known: list[str], label: str, ids: tuple[str, ...]
) -> tuple[list[str], list[str]]:
    """Columns that go before predictions, and a sentence on those of the fit that are missing."""
    if ids:
        return Roles(ids=ids).names("ids", known, label), []
    kept = [name for name in saved.ids if name in known]
    missing = [name for name in saved.ids if name not in kept]
    if not missing:
        return kept, []
    return kept, [f"{label} lacks the columns of --ids: {listed(missing)}"]


def _check_interval(saved: models.Saved, interval: float | None) -> None:
    if interval is None:
        return
    if not 0.0 < interval < 1.0:
        raise InputError(f"--interval must lie strictly between 0 and 1, got {interval:g}")
    if not hasattr(saved.model, "predict_interval"):
        name = type(saved.model).__name__
        others = _other_intervals(saved, interval)
        raise InputError(f"--interval: a {name} has no interval of its own{others}")


def _other_intervals(saved: models.Saved, coverage: float) -> str:
    """Where intervals of a coverage come from, if not from ``predict_interval``."""
    ways = []
    if not saved.has_density and len(saved.targets) == 1:
        ways.append(f"'fenchel fit --coverage {coverage:g}' fits a calibrated one")
    if hasattr(saved.model, "predict_distribution"):
        ways.append(f"predict_distribution(X).interval({coverage:g}) in Python has one")
    return "; " * bool(ways) + ", and ".join(ways)


def evaluate(model: str, data: str, target: str | None, *, as_json: bool) -> None:
    """Report loss, coverage and crossing on a table."""
    saved = models.load_model(model)
    path = Path(data)
    large = on_disk.is_large(path) and path.suffix.lower() != ".csv"
    if large and len(saved.targets) == 1:
        label, names, measured, messages = _evaluated_from_disk(saved, path, target)
    else:
        table = data_io.read_data(data, saved.missing)
        label, names = (
            table.label,
            saved.targets_in(table.names, table.label, target, table.target),
        )
        y = data_io.target_values(table, names)
        with saved.used_on(label):
            X, notices = rows(saved, table)
            messages = [*sentences(notices), *unused(saved, table.names, label, names)]
            if saved.has_density:
                X, left_out = data_io.whole_rows(X, X.columns.tolist(), label)
            else:
                X, y, left_out = data_io.with_targets(X, y, label)
            messages += left_out
            measured = measures.measure(saved.pipeline, X, y)
    warn([*saved.warnings, *messages])
    inner, name = certified_model(saved.pipeline), ", ".join(names)
    if as_json:
        head = {"model": type(inner).__name__, "data": label, "target": name or None}
        printing.print_json({**head, **printing.measures_record(inner, measured)})
    else:
        printing.print_measures(inner, measured, label, name)


def _evaluated_from_disk(
    saved: models.Saved, path: Path, target: str | None
) -> tuple[str, list[str], measures.Measures, list[str]]:
    """Label, targets, what is measured, and what is to be said of the rows."""
    encoder: Any = saved.encoder
    known, columns = on_disk.names_in(path), data_io.Columns(encoder.kinds_)
    names = saved.targets_in(known, path.name, target, None)
    read = [name for name in columns.names if name in known]
    notices: list[Notice] = []
    with saved.used_on(path.name), shown(hidden=False) as show:
        found = on_disk.rows_of(path, read, names[0], saved.missing, show)
        for table in on_disk.known_blocks(found, path.name):
            notices = joined([*notices, *rows(saved, table)[1]])
        measured = on_disk.measured(saved.pipeline, found, show)
    messages = [*sentences(notices), *unused(saved, known, path.name, names), *found.notices]
    return path.name, names, measured, messages


def datasets(*, as_json: bool) -> None:
    """List the data sets."""
    if as_json:
        printing.print_json([info._asdict() for info in list_datasets()])
    else:
        printing.print_datasets(list_datasets())


def demo(out_dir: str) -> None:
    """Fit the Engel data and draw the fan."""
    folder = places.check_folder(places.place_of(out_dir, "--out-dir"), "--out-dir")
    model, picture = folder / "fenchel-demo.skops", folder / "fenchel-demo.png"
    settings = Settings(levels="0.1,0.25,0.5,0.75,0.9")
    fit("engel", Roles(), settings, Outputs(str(model), str(picture)))
    printing.print_line(
        f"\nNext, with your own table:\n fenchel predict {model} engel --interval 0.8\n"
        " fenchel fit YOUR.csv --target COLUMN --out model.skops --plot fan.png\n"
        " fenchel fit --help"
    )


def rows(saved: models.Saved, table: data_io.Table) -> tuple[pd.DataFrame, list[Notice]]:
    """Rows of a table in the form that a model reads, and what is to be said of them."""
    encoder: Any = saved.encoder
    return data_io.select(table, encoder, saved.has_density)


def sentences(notices: list[Notice]) -> list[str]:
    """What is said of rows, whatever is in the cells that are named."""
    return [one_line(str(notice)) for notice in notices]


def unused(saved: models.Saved, names: list[str], label: str, beside: list[str]) -> list[str]:
    """A sentence on columns that a model does not use; ``beside`` are those with another use."""
    encoder: Any = saved.encoder
    known = {*encoder.feature_names_in_, *saved.targets, *saved.ids, *saved.dropped, *beside}
    others = [name for name in names if name not in known]
    said = f"{label} has columns that the model does not use: {listed(others)}"
    return [one_line(said)] * bool(others)


def draw(
    pipeline: Any, X: Any, y: Any, path: Path, feature: str | None, numeric: list[str]
) -> None:
    """Write the picture of a model, along the column of numbers that it reads most by default."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  (an optional dependency)
    from matplotlib.figure import Figure  # noqa: PLC0415  (the same)

    from fenchel.plotting import FanDisplay  # noqa: PLC0415  (slow to import)

    levels = levels_of(pipeline)
    more = 0 if levels is None else max(len(levels) - 9, 0)  # lines that the legend has more
    figure = Figure(figsize=(6.4 + 0.2 * more, 4.2 + 0.5 * more), layout="constrained")
    FigureCanvasAgg(figure)
    found = importances_of(pipeline)
    along = feature or (numeric if found is None else found.ordered(numeric))[0]
    FanDisplay.from_estimator(pipeline, X, y, feature=along, ax=figure.add_subplot())
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix.lower()[1:], dpi=200)
    places.write_output(path, content.getvalue())


def _check_plot_feature(feature: str | None, columns: data_io.Columns) -> None:
    if not columns.numeric:
        raise InputError("--plot draws along a column that is a number, and there is none")
    if feature is not None and feature not in columns.numeric:
        raise InputError(
            f"--plot-feature must be a column that is a number: one of "
            f"{', '.join(columns.numeric)}, got {feature}"
        )
