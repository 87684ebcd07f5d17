"""What is printed: tables for people, JSON for machines."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from fenchel._sentences import listed
from fenchel.cli.errors import one_line
from fenchel.cli.fitting import Fit
from fenchel.cli.measures import LOSS_NAMES, Measures
from fenchel.datasets import DatasetInfo
from fenchel.inspection import (
    Importances,
    has_moved_offsets,
    importances_of,
    learned_of,
    model_title,
    percent,
    short_name,
)
from fenchel.tables.describing import AS_IT_IS, LEFT_OUT

_WIDEST = 24  # letters of names that are put in line
_CERTIFIED = ": at most this far from the optimum"
_MOST_READ = 8  # features whose importances are told
_SCREEN = 24  # lines that a table has at most
_MOST_LEVELS = 7  # of more of them the outermost are shown
_IN_SAMPLE = " in sample"
_LABELS = 22  # columns of the terminal for names of facts


def fit_record(fit: Fit, measures: Measures, label: str, targets: list[str]) -> dict[str, Any]:
    """Everything known of a fit, for JSON."""
    model, certificate = fit.model, fit.model.certificate_
    search, found = fit.search, importances(fit)
    return {
        "model": type(model).__name__,
        "data": label,
        "target": targets[0] if len(targets) == 1 else targets,
        "features": {
            "numeric": fit.columns.numeric,
            "categorical": fit.columns.categorical,
            "dates": fit.columns.dates,
        },
        "columns": fit.encoder.description_,
        "alpha": float(model.alpha_),
        "learned": _learned_record(learned_of(fit.pipeline)),
        "epsilon": _epsilon(model),
        "level_gamma": getattr(model, "level_gamma", None),
        "kernel": repr(model.kernel_),
        "importances": found and dict(zip(found.names, found.shares.tolist(), strict=True)),
        "idle": found and found.idle,
        **measures_record(model, measures),
        "calibration": _calibration_record(fit.pipeline[-1]),
        "n_support": _n_support(model),
        "rank": int(model.feature_map_.rank_),
        "kernel_error": model.kernel_error_,
        "certificate": {
            "primal": certificate.primal,
            "dual": certificate.dual,
            "gap": certificate.gap,
            "relative_gap": certificate.relative_gap,
            "feasibility": certificate.feasibility,
        },
        "tol": model.tol,
        "converged": model.status_.converged,
        "interrupted": fit.interrupted,
        "on_disk": fit.on_disk,
        "n_iter": int(model.n_iter_),
        "seconds": fit.seconds,
        "cv": search and asdict(search) | {"at_the_end": search.at_the_end},
        "warnings": fit.warnings,
    }


def _calibration_record(model: Any) -> dict[str, Any] | None:
    if not hasattr(model, "conformity_scores_"):
        return None
    return {
        "coverage": model.coverage,
        "method": model.method,
        "rows": int(model.n_calibration_),
        "margin": model.quantile_,
    }


def _n_support(model: Any) -> int | None:
    support = getattr(model, "support_", None)
    return None if support is None else len(support)


def _learned_record(learned: Any) -> dict[str, Any] | None:
    return learned and {
        "criterion": learned.criterion,
        "evaluations": len(learned.history),
        "rows": learned.n_rows,
        "message": learned.message,
    }


def importances(fit: Fit) -> Importances | None:
    """How much each column counts, where the model tells."""
    return importances_of(fit.pipeline)


def _epsilon(model: Any) -> float | None:
    """The radius of insensitivity, as given or as read off the targets."""
    return getattr(model, "epsilon_", getattr(model, "epsilon", None))


def measures_record(model: Any, measures: Measures) -> dict[str, Any]:
    """What was measured on a table, for JSON."""
    return {
        "n_rows": measures.n_rows,
        "loss": LOSS_NAMES[type(model).__name__],
        "levels": [asdict(column) for column in measures.columns],
        "crossing_loss": measures.crossing_loss,
        "intervals": measures.intervals or None,
        "d2" if measures.score_name == "D²" else "r2": measures.score,
    }


def print_line(text: str) -> None:
    """A line as it is, however long."""
    Console(highlight=False, soft_wrap=True).print(text, markup=False)


def print_json(record: Any) -> None:
    """One line of JSON on stdout; numbers that JSON does not have become null or words."""
    sys.stdout.write(json.dumps(_plain(record), ensure_ascii=False, allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def print_fit(
    fit: Fit, measures: Measures, label: str, targets: list[str], n_more_lines: int
) -> None:
    """Table of a fit, which leaves so many lines of the screen to what comes after it."""
    names = fit.columns.names
    on = names[0] if len(names) == 1 else f"{len(names)} columns"
    of = f" of {_named(targets)}" if targets else ""
    title = f"{model_title(fit.model)}{of} on {on}: {label}, {measures.n_rows} rows"
    n_lines = _print_tables(title, fit.model, measures, _facts(fit, measures), _IN_SAMPLE)
    if set(fit.encoder.description_.values()) != {AS_IT_IS}:
        _print_columns(fit.encoder.description_, _SCREEN - n_lines - n_more_lines - 1)


def _named(targets: list[str]) -> str:
    shown = targets if len(targets) < 3 else [targets[0], "…", targets[-1]]
    return short_name(", ".join(shown), 3 * _WIDEST)


def _print_columns(lines: dict[str, str], n_lines: int) -> None:
    """Say what was done to the columns, in so many lines, one for all that are alike."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(" columns", style="dim"))
    alike: dict[str, list[str]] = {}
    left_out = []
    for name, line in lines.items():
        if line.startswith(LEFT_OUT):
            left_out.append(f"{one_line(name)} ({line.removeprefix(LEFT_OUT)})")
        else:
            alike.setdefault(line, []).append(one_line(name))
    plain = alike.pop(AS_IT_IS, None)
    told = [(listed(names, 4), line) for line, names in alike.items()]
    if plain:
        told.append((listed(plain, 4) if len(plain) == 1 else f"{len(plain)} columns", AS_IT_IS))
    told += [("left out", listed(left_out, 6))] if left_out else []
    cut = len(told) > max(n_lines, 2)
    shown = told[: max(n_lines, 2) - 1] if cut else told
    width = min(max(len(names) for names, _ in shown), 2 * _WIDEST)
    for names, line in shown:
        console.print(_clipped(f"  {names:<{width}}  {line}", room=0), markup=False)
    if cut:
        console.print(f"  … and {len(told) - len(shown)} more lines, all of them with --json")


def print_measures(model: Any, measures: Measures, label: str, target: str) -> None:
    """Table of an evaluation."""
    of = f" of {target}" if target else ""
    title = f"{model_title(model)}{of}: {label}, {measures.n_rows} rows"
    _print_tables(title, model, measures, [*_intervals(measures, None), *_scores(measures)])


def _print_tables(
    title: str, model: Any, measures: Measures, facts: list[tuple[str, str]], whose: str = ""
) -> int:
    """Print the tables; how many lines these are. ``whose`` says of what rows measures are."""
    console = Console(highlight=False)
    console.print(Text(title, style="bold"))
    measured = _measured(model, measures, whose)
    console.print(measured)
    table = RichTable(box=None, show_header=False, padding=(0, 2, 0, 1))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(Text(name), Text(value))
    console.print(table)
    return 2 + measured.row_count + len(facts)


def print_datasets(infos: list[DatasetInfo]) -> None:
    """Table of data sets."""
    table = RichTable(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("name", "rows", "features", "target", "bundled", "source"):
        table.add_column(name, justify="right" if name in ("rows", "features") else "left")
    for info in infos:
        numbers = str(info.n_samples), str(info.n_features)
        bundled = "yes" if info.bundled else "no"
        table.add_row(info.name, *numbers, info.target, bundled, info.source)
    Console(highlight=False).print(table)


def _measured(model: Any, measures: Measures, whose: str) -> RichTable:
    table = RichTable(box=None, padding=(0, 2, 0, 1), header_style="dim")
    of_levels = measures.crossing_loss is not None
    if of_levels:
        table.add_column("level", justify="right")
        table.add_column(f"coverage{whose}", justify="right")
    table.add_column(f"{LOSS_NAMES[type(model).__name__]}{whose}", justify="right")
    rows = []
    for column in measures.columns:
        start = []
        if of_levels:
            start = [percent(column.level or 0.0), f"{100.0 * (column.coverage or 0.0):.1f} %"]
        rows.append([*start, f"{column.loss:.5g}"])
    if len(rows) > _MOST_LEVELS:
        end = _MOST_LEVELS // 2
        rows = [*rows[:end], ["…"] * len(rows[0]), *rows[-end:]]
    for row in rows:
        table.add_row(*row)
    return table


def _scores(measures: Measures, whose: str = "") -> list[tuple[str, str]]:
    facts = []
    if measures.score is not None:
        facts.append((f"{measures.score_name}{whose or ' (explained)'}", f"{measures.score:.4f}"))
    if measures.crossing_loss is not None:
        facts.append(("crossing loss", f"{measures.crossing_loss:.4g}"))
    return facts


def _intervals(measures: Measures, wrapper: Any) -> list[tuple[str, str]]:
    """What calibrated intervals do on these rows, and how they were calibrated, if known."""
    found = measures.intervals
    if not found:
        return []
    words = f"cover {percent(found['coverage'], 3)} of these rows, mean width "
    facts = [("intervals", f"{words}{found['mean_width']:.4g}")]
    if wrapper is not None:
        unseen = "that the fit has not seen" if wrapper.method == "split" else "in folds"
        rows = f"{wrapper.n_calibration_} rows {unseen}"
        facts.append(("calibrated", f"for {percent(wrapper.coverage)}, on {rows}"))
    return facts


def _strength(model: Any, learned: Any) -> list[tuple[str, str]]:
    """Alpha, and where it and the length scales are from."""
    alpha = f"{model.alpha_:.4g}"
    if learned is None:
        by_rule = ", by rule: nothing was learned" if model.alpha is None else ""
        return [("alpha", f"{alpha}{by_rule}")]
    what = f"{alpha}; the width is" if learned.in_nats else f"{alpha},"
    return [
        ("alpha", f"{what} learned from {learned.n_rows} rows"),
        ("held-out loss", learned.said),
    ]


def _read(fit: Fit) -> list[tuple[str, str]]:
    """Which columns the model reads, and how much."""
    found = importances(fit)
    if found is None or len(found.names) == 1:
        return []
    read = found.largest(_MOST_READ)
    shown = ", ".join(f"{short_name(name, _WIDEST)} {share:.2f}" for name, share in read)
    facts = [("importances", _clipped(shown))] if read else []
    if found.idle:
        idle = [short_name(name, _WIDEST) for name in found.idle]
        facts.append(("idle", _clipped(listed(idle))))
    return facts


def _clipped(text: str, room: int = _LABELS) -> str:
    """As much of a text as fits on a line, with room for the name of a fact."""
    width = max(Console().width - room, 2 * _WIDEST)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _facts(fit: Fit, measures: Measures) -> list[tuple[str, str]]:
    model, search = fit.model, fit.search
    facts = [*_intervals(measures, fit.pipeline[-1]), *_strength(model, learned_of(fit.pipeline))]
    if search is not None:
        what = "alpha and width" if len(search.widths) > 1 else "alpha"
        facts.append((what, f"chosen by {search.folds}-fold cross-validation"))
        if search.at_the_end:
            others = f"{' and '.join(search.at_the_end)}: others may do better"
            facts.append(("", others))
    if _epsilon(model):
        facts.append(("epsilon", f"{_epsilon(model):.4g}"))
    facts.append(("kernel", _clipped(" ".join(repr(model.kernel_).split()))))
    if has_moved_offsets(model):
        facts.append(("offsets", "moved to levels of held-out rows, after the certified fit"))
    facts += _read(fit)
    facts += _scores(measures, _IN_SAMPLE)
    gap = model.certificate_.relative_gap
    met = "" if gap <= model.tol else f", above tol={model.tol:g}"
    if model.certified_kernel_ == "features" and model.kernel_error_ > 0.0:
        met += ", of the approximated kernel"
    error = f", kernel error {model.kernel_error_:.1e}" if model.kernel_error_ > 0.0 else ""
    rank = f"{model.feature_map_.rank_}{error}"
    n_support = _n_support(model)
    if n_support is not None:
        of = f"{n_support} of {model_rows(fit, measures)}"
        facts.append(("support vectors", f"{of}, rank {rank}"))
    else:
        facts.append(("rank", rank))
    disk = ", from disk" if fit.on_disk else ""
    facts += [
        ("relative gap", f"{max(gap, 0.0):.1e}{met or _CERTIFIED}"),
        ("seconds", f"{fit.seconds:.2f}{disk}"),
    ]
    return facts


def model_rows(fit: Fit, measures: Measures) -> int:
    """Rows that the model has seen: without those that are kept from it to calibrate."""
    wrapper = fit.pipeline[-1]
    kept = int(wrapper.n_calibration_) if getattr(wrapper, "method", "") == "split" else 0
    return measures.n_rows - kept
