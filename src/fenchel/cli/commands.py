"""What each command does; their options are in ``app``."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fenchel.cli import data_io, fitting, measures, models, places, printing
from fenchel.cli.errors import InputError, as_input_errors, listed, one_line
from fenchel.datasets import list_datasets
from fenchel.regression import QuantileRegressor
from fenchel.report import Training

_MODELS = (".skops",)
_PICTURES = (".png", ".pdf", ".svg")


def fit(
    data: str,
    target: str | None,
    settings: fitting.Settings,
    *,
    out: str | None,
    plot: str | None,
    plot_feature: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Fit, report, save, draw."""
    place = places.check_output(out, "--out", _MODELS)
    picture = places.check_output(plot, "--plot", _PICTURES)
    if place is not None:
        models.check_skops()
    if picture is not None:
        _check_matplotlib()
    elif plot_feature is not None:
        raise InputError("--plot-feature needs --plot, the file to draw into")
    table = data_io.read_data(data)
    name = data_io.target_of(table, target)
    features, y = data_io.split_target(table, name)
    columns = data_io.columns_of(features, table.label)
    X = data_io.prepare(features, columns)
    if picture is not None:
        _check_plot_feature(plot_feature, columns)
    fitted = _fit_with_progress(settings, X, y, hidden=quiet or as_json)
    X = X[columns.names]
    with as_input_errors(f"the model fails on the rows of {table.label}: "):
        measured = measures.measure(fitted.pipeline, X, y)
    with places.noting_files(place, picture):
        if place is not None:
            training = Training.of(fitted.pipeline, X, y, table.label)
            models.save_model(fitted, name, place, training)
        if picture is not None:
            draw(fitted.pipeline, X, y, picture, plot_feature)
        warn(fitted.warnings)
        if as_json:
            record = printing.fit_record(fitted, measured, table.label, name)
            printing.print_json({**record, "out": out, "plot": plot})
        elif not quiet:
            printing.print_fit(fitted, measured, table.label, name)
            _print_written(model=place, picture=picture)


def _print_written(**files: Path | None) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for what, path in files.items():
        if path is not None:
            console.print(f" {what} written to {path}", markup=False)


def _fit_with_progress(settings: fitting.Settings, X: Any, y: Any, *, hidden: bool) -> fitting.Fit:
    console = Console(stderr=True)
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=hidden or not console.is_terminal,
    )
    with progress:
        task = progress.add_task("fitting", total=None)

        def show(what: str, done: int, total: int | None) -> None:
            progress.update(task, description=what, completed=done, total=total)

        return fitting.fit(settings, X, y, show)


def predict(model: str, data: str, *, out: str | None, interval: float | None) -> None:
    """Predict the rows of a table."""
    place = places.check_output(out, "--out", (".csv",))
    saved = models.load_model(model)
    _check_interval(saved.model, interval)
    table = data_io.read_data(data)
    with saved.used_on(table.label):
        X, messages = rows(saved, table)
        prediction = saved.pipeline.predict(X)
        outputs = prediction.reshape(len(X), -1).T
        columns = dict(zip(measures.output_names(saved.model), outputs, strict=True))
    if interval is not None:
        try:
            ends = saved.model.predict_interval(saved.pipeline[:-1].transform(X), interval)
        except ValueError as error:
            raise InputError(one_line(error).replace("coverage=", "--interval ")) from error
        columns |= {"lower": ends[:, 0], "upper": ends[:, 1]}
    warn([*saved.warnings, *messages])
    text = pd.DataFrame(columns).to_csv(index=False, lineterminator="\n")
    if place is None:
        sys.stdout.write(text)
    else:
        places.write_output(place, text.encode())


def _check_interval(model: Any, interval: float | None) -> None:
    if interval is None:
        return
    if not isinstance(model, QuantileRegressor):
        raise InputError("--interval needs a model of quantiles (fenchel fit --model quantile)")
    if not 0.0 < interval < 1.0:
        raise InputError(f"--interval must lie strictly between 0 and 1, got {interval:g}")


def evaluate(model: str, data: str, target: str | None, *, as_json: bool) -> None:
    """Report loss, coverage and crossing on a table."""
    saved = models.load_model(model)
    table = data_io.read_data(data)
    name = data_io.target_of(table, saved.target if target is None else target)
    _, y = data_io.split_target(table, name)
    with saved.used_on(table.label):
        X, messages = rows(saved, table, name)
        measured = measures.measure(saved.pipeline, X, y)
    warn([*saved.warnings, *messages])
    if as_json:
        head = {"model": type(saved.model).__name__, "data": table.label, "target": name}
        printing.print_json({**head, **printing.measures_record(saved.model, measured)})
    else:
        printing.print_measures(saved.model, measured, table.label, name)


def datasets(*, as_json: bool) -> None:
    """List the data sets."""
    if as_json:
        printing.print_json([info._asdict() for info in list_datasets()])
    else:
        printing.print_datasets(list_datasets())


def demo(out_dir: str) -> None:
    """Fit the Engel data and draw the fan."""
    folder = places.check_folder(places.place_of(out_dir, "--out-dir"), "--out-dir")
    settings = fitting.Settings(levels="0.1,0.25,0.5,0.75,0.9")
    model, picture = folder / "fenchel-demo.skops", folder / "fenchel-demo.png"
    fit(
        "engel",
        None,
        settings,
        out=str(model),
        plot=str(picture),
        plot_feature=None,
        as_json=False,
        quiet=False,
    )
    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"\nNext, with your own table:\n fenchel predict {model} engel --interval 0.8\n"
        " fenchel fit YOUR.csv --target COLUMN --out model.skops --plot fan.png\n"
        " fenchel fit --help",
        markup=False,
    )


def rows(
    saved: models.Saved, table: data_io.Table, target: str | None = None
) -> tuple[pd.DataFrame, list[str]]:
    """Rows of a table in the form that a model reads, and what is to be said of them."""
    encoder: Any = saved.encoder
    X, messages = data_io.select(table, encoder)
    known = {*encoder.feature_names_in_, saved.target, target}
    others = [str(name) for name in table.frame.columns if name not in known]
    if others:
        messages.append(
            f"{table.label} has columns that the model does not know and does not read: "
            f"{listed(others)}"
        )
    return X, [one_line(message) for message in messages]


def draw(pipeline: Any, X: Any, y: Any, path: Path, feature: str | None) -> None:
    """Write the picture of a model."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    from fenchel.plotting import FanDisplay  # noqa: PLC0415

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    FanDisplay.from_estimator(pipeline, X, y, feature=feature, ax=figure.add_subplot())
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix.lower()[1:], dpi=200)
    places.write_output(path, content.getvalue())


def _check_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401, PLC0415  (an optional dependency)
    except ImportError as error:
        raise InputError("--plot needs matplotlib: pip install 'fenchel[plot]'") from error


def _check_plot_feature(feature: str | None, columns: data_io.Columns) -> None:
    if not columns.numeric:
        raise InputError("--plot draws along a column that is a number, and there is none")
    if feature is not None and feature not in columns.numeric:
        raise InputError(
            f"--plot-feature must be a column that is a number: one of "
            f"{', '.join(columns.numeric)}, got {feature}"
        )


def warn(messages: list[str]) -> None:
    """One line on stderr for each warning."""
    for message in messages:
        sys.stderr.write(f"fenchel: warning: {message}\n")
