"""Commands and their options; what they do is imported when one runs."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Annotated, Any

import typer

from fenchel.cli import checks
from fenchel.cli.errors import InputError, one_sentence
from fenchel.cli.interrupts import held
from fenchel.cli.roles import Roles
from fenchel.cli.settings import LARGEST_SEED, Settings

app = typer.Typer(
    name="fenchel",
    help="Kernel regression beyond the mean, with a certificate for every fit.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _number(name: str, kind: type[float], allowed: str, **given: Any) -> Any:
    """An option that is a number, or a whole one, and says what is allowed where it is not."""

    def read(text: Any) -> float:
        try:
            return kind(text)
        except ValueError as error:
            raise InputError(f"{name} must be {allowed}, got {text!r}") from error

    metavar = "INTEGER" if kind is int else "NUMBER"
    return typer.Option(name, parser=read, metavar=metavar, **given)


_Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A .csv or .parquet file, a folder of .parquet files, or the name of a data set.",
    ),
]
_DataInMemory = Annotated[
    str, typer.Argument(metavar="DATA", help="A .csv or .parquet file, or the name of a data set.")
]
_Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="A .skops file that fenchel fit wrote.")
]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
_Target = Annotated[str | None, typer.Option(help="Column to learn; data sets know theirs.")]
_Against = Annotated[
    str | None,
    typer.Option(help="Column to hold predictions against.", show_default="that of the fit"),
]
_FitTarget = Annotated[
    str | None,
    typer.Option(
        help="Column to learn; data sets know theirs. For curves several, with commas; for a "
        "density none."
    ),
]
_Columns = Annotated[
    list[str] | None,
    typer.Option(help="Columns to learn from, with commas.", show_default="all others"),
]
_Drop = Annotated[list[str] | None, typer.Option(help="Columns to leave out, with commas.")]
_Ids = Annotated[
    list[str] | None,
    typer.Option(help="Columns to leave out and to write beside predictions, with commas."),
]
_Groups = Annotated[
    list[str] | None,
    typer.Option(
        help="Column to leave out, whose labels say which rows depend on each other, such as "
        "patients with several visits: rows of one are held out together."
    ),
]
_Missing = Annotated[
    list[str] | None,
    typer.Option(help="Words that stand for missing values, with commas, such as k.A.,-999."),
]
_Coverage = Annotated[
    float | None,
    _number(
        "--coverage",
        float,
        "a number strictly between 0 and 1",
        help="Calibrate intervals that hold this share of new rows, such as 0.8.",
    ),
]
_NonCrossing = Annotated[
    bool,
    typer.Option(
        "--non-crossing",
        help="Quantiles that cross nowhere; their levels are those of held-out rows too.",
    ),
]
_Rank = Annotated[
    int | None,
    _number(
        "--rank",
        int,
        "a whole number >= 1",
        help="Features at most: fewer are faster and rougher.",
        show_default="as rows demand",
    ),
]
_Jobs = Annotated[
    int | None,
    _number(
        "--n-jobs",
        int,
        "a number of threads, or -1 for all cores",
        help="Threads, -1 for all cores.",
        show_default="as OMP_NUM_THREADS says",
    ),
]
_Kind = Annotated[
    str, typer.Option(help="quantile, expectile, svr, ridge, normal, density or curves.")
]
_Levels = Annotated[
    str | None,
    typer.Option(
        help="Levels of quantiles or expectiles, between 0 and 1, with commas.",
        show_default="0.1,0.5,0.9",
    ),
]
_Alpha = Annotated[
    float | None,
    _number(
        "--alpha",
        float,
        "a number > 0",
        help="Strength of the regularization.",
        show_default="learned from held-out rows",
    ),
]
_LevelGamma = Annotated[
    float | None,
    _number(
        "--level-gamma",
        float,
        "a number >= 0, or inf",
        help="Coupling of levels: 0 makes curves parallel, inf independent.",
        show_default="1",
    ),
]
_Epsilon = Annotated[
    float | None,
    _number(
        "--epsilon",
        float,
        "a number >= 0",
        help="Radius of insensitivity, in the units of the target.",
        show_default="0; for svr a tenth of the target's spread, less with little noise",
    ),
]
_Kernel = Annotated[
    str | None,
    typer.Option(
        help="gaussian or rbf, laplacian, matern12, matern32, matern52, polynomial, linear.",
        show_default="learned: Matérn 3/2 on the columns and their ranks; "
        "gaussian where nothing is learned",
    ),
]
_LengthScale = Annotated[
    str | None,
    typer.Option(
        help="A number, median, scale, or q0.7 for a quantile of the distances; of a gaussian "
        "kernel where none is named.",
        show_default="learned, one for each column; scale where nothing is learned",
    ),
]
_NoLearn = Annotated[
    bool,
    typer.Option(
        "--no-learn",
        help="Learn nothing: length scales and alpha follow rules where they are not given.",
    ),
]
_Cv = Annotated[
    int | None,
    _number(
        "--cv",
        int,
        "a whole number >= 2",
        help="Choose alpha, and one length scale unless it is given, by cross-validation "
        "with so many folds. This takes the place of learning; levels are then moved to "
        "those of held-out rows, as where something is learned.",
    ),
]
_SEEDS = "--seed", int, f"a whole number from 0 to {LARGEST_SEED}"
_Seed = Annotated[int, _number(*_SEEDS, help="Seed of the folds of --cv and of subsamples.")]
_Tol = Annotated[
    float, _number("--tol", float, "a number > 0", help="Relative duality gap to reach.")
]
_MaxTime = Annotated[
    float | None,
    _number(
        "--max-time",
        float,
        "a number > 0",
        help="Seconds after which each fit is stopped, with the best model so far.",
    ),
]
_Out = Annotated[str | None, typer.Option(help="Where to write the model (.skops).")]
_Plot = Annotated[str | None, typer.Option(help="Where to write a picture (.png, .pdf, .svg).")]
_PlotFeature = Annotated[
    str | None,
    typer.Option(help="Column to draw along.", show_default="the number that is read most"),
]
_Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but warnings.")]


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"fenchel {sys.modules['fenchel'].__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


@app.command()
def fit(
    data: _Data,
    target: _FitTarget = None,
    columns: _Columns = None,
    drop: _Drop = None,
    ids: _Ids = None,
    groups: _Groups = None,
    missing: _Missing = None,
    model: _Kind = "quantile",
    levels: _Levels = None,
    coverage: _Coverage = None,
    non_crossing: _NonCrossing = False,
    alpha: _Alpha = None,
    level_gamma: _LevelGamma = None,
    epsilon: _Epsilon = None,
    kernel: _Kernel = None,
    length_scale: _LengthScale = None,
    rank: _Rank = None,
    no_learn: _NoLearn = False,
    cv: _Cv = None,
    seed: _Seed = 0,
    tol: _Tol = 1e-6,
    max_time: _MaxTime = None,
    n_jobs: _Jobs = None,
    out: _Out = None,
    plot: _Plot = None,
    plot_feature: _PlotFeature = None,
    as_json: _Json = False,
    quiet: _Quiet = False,
) -> None:
    """Fit a model to a table and report its certificate.

    With --target alone, length scales and alpha are learned from held-out rows.

    Words, dates, true and false, and missing values become numbers; the lines
    on the columns say how.
    Without --out nothing is kept. Messages count rows from 1, without the header.
    Ctrl-C keeps the best model so far.
    """
    settings = Settings(
        model=model,
        levels=levels,
        coverage=coverage,
        non_crossing=non_crossing,
        alpha=alpha,
        level_gamma=level_gamma,
        epsilon=epsilon,
        kernel=kernel,
        length_scale=length_scale,
        rank=rank,
        learn=not no_learn,
        cv=cv,
        seed=seed,
        tol=tol,
        max_time=max_time,
        n_jobs=n_jobs,
    )
    named = (columns, drop, ids, missing, groups)
    roles = Roles(target, *(tuple(names or ()) for names in named))
    checks.before_fit(data, roles, settings, out=out, plot=plot)
    commands = _room("commands")
    commands.fit(data, roles, settings, commands.Outputs(out, plot, plot_feature, as_json, quiet))


@app.command()
def predict(
    model: _Model,
    data: _Data,
    out: Annotated[
        str | None, typer.Option(help="Where to write the predictions (.csv); stdout if left out.")
    ] = None,
    interval: Annotated[
        float | None,
        _number(
            "--interval",
            float,
            "a number strictly between 0 and 1",
            help="Add lower and upper ends of the central interval of this coverage.",
        ),
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns to write beside the predictions, with commas.",
            show_default="those of the fit",
        ),
    ] = None,
) -> None:
    """Predict the rows of a table, in their order, as CSV."""
    checks.before_using(model, data, out=out, endings=checks.PREDICTIONS)
    _room("commands").predict(model, data, out=out, interval=interval, ids=tuple(ids or ()))


@app.command()
def evaluate(model: _Model, data: _Data, target: _Against = None, as_json: _Json = False) -> None:
    """Report loss, coverage and crossing of a model on a table."""
    checks.before_using(model, data, out=None, endings=())
    _room("commands").evaluate(model, data, target, as_json=as_json)


@app.command()
def report(
    model: _Model,
    data: _DataInMemory,
    out: Annotated[str, typer.Option(help="Where to write the page (.html).")],
    target: _Against = None,
    quiet: _Quiet = False,
) -> None:
    """Write a page on a model and a table: scores, calibration, pictures.

    Best on rows that the fit has not seen: the page says whether it has.
    """
    checks.before_using(model, data, out=out, endings=checks.PAGES)
    _room("report_command").report(model, data, target=target, out=out, quiet=quiet)


@app.command()
def compare(
    data: _DataInMemory,
    target: _Target = None,
    columns: _Columns = None,
    drop: _Drop = None,
    groups: _Groups = None,
    missing: _Missing = None,
    levels: _Levels = None,
    test_share: Annotated[
        float,
        _number(
            "--test-share",
            float,
            "a number strictly between 0 and 1",
            help="Share of the rows, or of --groups, drawn by --seed, that is held out.",
        ),
    ] = 0.25,
    rank: _Rank = None,
    seed: Annotated[
        int, _number(*_SEEDS, help="Seed of the draw of held-out rows, and of subsamples.")
    ] = 0,
    max_time: _MaxTime = None,
    n_jobs: _Jobs = None,
    as_json: _Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Compare quantiles with linear ones and gradient boosting, on held-out rows.

    All have their defaults; none of them, nor the encoding of columns, sees a
    held-out row.
    """
    settings = Settings(levels=levels, rank=rank, seed=seed, max_time=max_time, n_jobs=n_jobs)
    named = (columns, drop, None, missing, groups)
    roles = Roles(target, *(tuple(names or ()) for names in named))
    checks.before_fit(data, roles, settings, out=None, plot=None)
    _room("compare").compare(
        data, roles, settings, test_share=test_share, as_json=as_json, quiet=quiet
    )


@app.command()
def datasets(as_json: _Json = False) -> None:
    """List the data sets that can be named instead of a file."""
    _room("commands").datasets(as_json=as_json)


@app.command()
def demo(
    out_dir: Annotated[str, typer.Option(help="Folder for the model and the picture.")] = ".",
) -> None:
    """Fit quantiles of food expenditure given income, and draw them."""
    _room("commands").demo(out_dir)


def _room(name: str) -> types.ModuleType:
    """A module of the command line that imports what takes time."""
    with held():
        return importlib.import_module(f"fenchel.cli.{name}")


def run(arguments: list[str]) -> int:
    """Run a command; complaints about options become an :class:`InputError`."""
    command: Any = typer.main.get_command(app)
    # by its own method, command.main, interrupts would not arrive as such
    try:
        with command.make_context("fenchel", arguments or ["--help"]) as context:
            command.invoke(context)
    except typer.Exit as done:  # such as after --help
        return int(done.exit_code)
    except Exception as error:
        if not hasattr(error, "format_message"):  # click's own exceptions have it
            raise
        message, where = one_sentence(error.format_message()), getattr(error, "ctx", None)
        command_path = "fenchel" if where is None else where.command_path
        raise InputError(f"{message} (see {command_path} --help)") from error
    return 0
