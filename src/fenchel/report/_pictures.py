"""The pictures of a report, as SVG."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fenchel.inspection import FeatureTable, percent
from fenchel.inspection.tables import some_rows
from fenchel.kernels import Precomputed
from fenchel.plotting import (
    ConvergenceDisplay,
    FanDisplay,
    ImportanceDisplay,
    QuantileCalibrationDisplay,
    SupportDisplay,
)
from fenchel.report._facts import Facts

MOST_ROWS = 2000  # drawn in a picture
MOST_FANS = 3
_STEPS = 2  # of a history, from which on there is a line to draw


@dataclass(frozen=True)
class Picture:
    """A picture with alternative text (a phrase) and a caption (a sentence)."""

    section: str
    svg: bytes
    alt: str
    caption: str


def pictures(facts: Facts, X: Any) -> list[Picture]:
    """All pictures that apply; none if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401, PLC0415  (an optional dependency)
    except ImportError:
        return []
    return [
        *_importances(facts),
        *_fans(facts, X),
        *_calibration(facts),
        *_support(facts, X),
        *_convergence(facts),
    ]


def _importances(facts: Facts) -> Iterator[Picture]:
    found = facts.importances
    read = [] if found is None else found.largest()
    if found is None or len(found.names) == 1 or not read:
        return
    svg = _drawn(partial(ImportanceDisplay.from_importances, found.names, found.shares))
    yield Picture(
        "importances",
        svg,
        f"importances of {len(read)} features as bars, the largest on top",
        "Bars: importances of features, the largest on top.",
    )


def _fans(facts: Facts, X: Any) -> Iterator[Picture]:
    table = FeatureTable.of(X)
    numeric = _numeric(facts)
    if isinstance(getattr(facts.certified, "kernel_", None), Precomputed):
        return
    rows = some_rows(facts.n_rows, MOST_ROWS)
    some = table.rows(rows, {})
    for j in numeric[:MOST_FANS]:
        sampled = _sampled(facts.n_rows, len(rows), np.isnan(table.columns[j][rows]).sum())
        svg = _drawn(
            partial(
                FanDisplay.from_estimator,
                facts.estimator,
                some,
                facts.targets[rows, 0],
                feature=j,
                target_name=_drawn_target(facts) or " ",
            )
        )
        name = table.names[j]
        what = "predictions" if facts.levels is None else f"{len(facts.levels)} {facts.statistic}"
        of = f" of {facts.outputs[0]}" if facts.outputs else ""
        spread = _spread(facts)
        others = (
            " The title says what is done with the other features." if len(table.names) > 1 else ""
        )
        yield Picture(
            "pictures",
            svg,
            f"{what} of {_drawn_target(facts)} along {name}{spread}, over the rows as points",
            f"Along {name}: {what}{of} as curves{spread}, and {sampled} as points.{others}",
        )


def _drawn_target(facts: Facts) -> str:
    """The target, or the first one of several, which is the one that pictures are of."""
    return facts.outputs[0] if facts.outputs else facts.target


def _sampled(n_rows: int, n_drawn: int, n_without: int) -> str:
    """Which rows are points of a picture; rows without a number are in none."""
    if n_drawn < n_rows:
        said = f"{n_drawn} of the {n_rows} rows, drawn at random,"
    else:
        said = "the row" if n_rows == 1 else f"all {n_rows} rows"
    return f"{said} but {n_without} without a number" if n_without else said


def _spread(facts: Facts) -> str:
    """How intervals are drawn, if there are any."""
    found = facts.intervals
    if found is None or found.n_infinite:
        return ""
    shown = "as a band" if found.two_sided else "as one end"
    return f", {percent(found.coverage)} intervals {shown}"


def _numeric(facts: Facts) -> list[int]:
    """Numeric columns that vary, with those first that the model uses most."""
    columns = {column.name: j for j, column in enumerate(facts.columns)}
    numbers = {name: facts.columns[j].numbers for name, j in columns.items()}
    names = [name for name, each in numbers.items() if each is not None and each[0] < each[2]]
    if facts.importances is not None:
        names = facts.importances.ordered(names)
    return [columns[name] for name in names]


def _calibration(facts: Facts) -> Iterator[Picture]:
    if not facts.calibration:
        return
    svg = _drawn(
        lambda ax: QuantileCalibrationDisplay.from_predictions(
            facts.targets[facts.scored, 0],
            facts.predictions[facts.scored],
            levels=facts.levels,
            ax=ax,
        ),
        (4.8, 4.6),
    )
    pairs = (f"{100 * c.level:g} % is {100 * c.observed:.1f} %" for c in facts.calibration)
    yield Picture(
        "calibration",
        svg,
        f"observed against nominal levels: {', '.join(pairs)}",
        "Calibrated levels lie on the diagonal; inside the band, the difference may be chance.",
    )


def _support(facts: Facts, X: Any) -> Iterator[Picture]:
    """Support vectors; only for few rows of the fit, one target and one feature."""
    known = all(hasattr(facts.model, name) for name in ("support_", "dual_coef_"))
    if not (known and facts.same_rows and facts.n_rows <= MOST_ROWS):
        return
    numeric = _numeric(facts)
    if not numeric:
        return
    name = facts.columns[numeric[0]].name
    svg = _drawn(
        lambda ax: SupportDisplay.from_estimator(
            facts.estimator,
            X,
            facts.targets[:, 0],
            feature=numeric[0],
            target_name=_drawn_target(facts) or " ",
            ax=ax,
        )
    )
    yield Picture(
        "pictures",
        svg,
        f"training rows along {name}, the support vectors marked",
        "Larger marks have more weight. Without the other rows the model would be the same.",
    )


def _convergence(facts: Facts) -> Iterator[Picture]:
    history = getattr(facts.certified, "history_", None)
    if history is None or len(history) < _STEPS:
        return
    svg = _drawn(
        lambda ax: ConvergenceDisplay.from_estimator(facts.certified, against="iteration", ax=ax)
    )
    yield Picture(
        "certificate",
        svg,
        "relative duality gap of each iteration of the solver, on a logarithmic axis",
        "How the solver came to the certificate.",
    )


def _drawn(draw: Callable[..., object], figsize: tuple[float, float] = (6.4, 4.2)) -> bytes:
    """Draw on a separate figure that no window shows; the bytes are always the same."""
    import matplotlib as mpl  # noqa: PLC0415  (an optional dependency)
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  (the same)
    from matplotlib.figure import Figure  # noqa: PLC0415  (the same)

    figure, content = Figure(figsize=figsize, layout="constrained"), io.BytesIO()
    FigureCanvasAgg(figure)
    settings: Any = {"svg.hashsalt": "fenchel", "svg.fonttype": "path"}
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        draw(ax=figure.add_subplot())
        figure.savefig(content, format="svg", dpi=150, metadata={"Date": None})
    return content.getvalue()
