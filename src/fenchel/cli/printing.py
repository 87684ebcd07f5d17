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

from fenchel.cli.errors import listed, one_line
from fenchel.cli.fitting import Fit
from fenchel.cli.measures import LOSS_NAMES, Measures
from fenchel.datasets import DatasetInfo
from fenchel.inspection import Importances, importances_of, model_title, percent, short_name
from fenchel.tables.describing import AS_IT_IS

_WIDEST = 24  # letters of names that are put in line
_CONSTANT = "the best constant's"
_MOST_READ = 8  # features whose importances are told


def fit_record(fit: Fit, measures: Measures, label: str, target: str) -> dict[str, Any]:
    """Everything known of a fit, for JSON."""
    model, certificate = fit.model, fit.model.certificate_
    search, found = fit.search, _importances(fit)
    return {
        "model": type(model).__name__,
        "data": label,
        "target": target,
        "features": {
            "numeric": fit.columns.numeric,
            "categorical": fit.columns.categorical,
            "dates": fit.columns.dates,
        },
        "columns": fit.encoder.description_,
        "alpha": float(model.alpha_),
        "learned": _learned_record(model.learned_),
        "epsilon": _epsilon(model),
        "level_gamma": getattr(model, "level_gamma", None),
        "kernel": repr(model.kernel_),
        "importances": dict(zip(found.names, found.shares.tolist(), strict=True)),
        "idle": found.idle,
        **measures_record(model, measures),
        "n_support": len(model.support_),
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
        "n_iter": int(model.n_iter_),
        "seconds": fit.seconds,
        "cv": search and asdict(search) | {"at_the_end": search.at_the_end},
        "warnings": fit.warnings,
    }


def _learned_record(learned: Any) -> dict[str, Any] | None:
    return learned and {
        "criterion": learned.criterion,
        "evaluations": len(learned.history),
        "rows": learned.n_rows,
        "message": learned.message,
    }


def _importances(fit: Fit) -> Importances:
    found = importances_of(fit.pipeline)
    assert found is not None  # the command line fits no kernel matrices
    return found


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
        "d2" if measures.score_name == "D²" else "r2": measures.score,
    }


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


def print_fit(fit: Fit, measures: Measures, label: str, target: str) -> None:
    """Table of a fit."""
    model, names = fit.model, fit.columns.names
    on = names[0] if len(names) == 1 else f"{len(names)} columns"
    title = f"{model_title(model)} of {target} on {on}: {label}, {measures.n_rows} rows"
    _print_tables(title, model, measures, _facts(fit, measures))
    if set(fit.encoder.description_.values()) != {AS_IT_IS}:
        _print_columns(fit.encoder.description_)
    gap = max(model.certificate_.relative_gap, 0.0)
    Console(highlight=False).print(
        f" Certified: no model with this kernel and alpha has an objective lower by more than\n"
        f" {gap:.1e} times that of the best constant.",
        soft_wrap=True,
    )


def _print_columns(lines: dict[str, str]) -> None:
    """Say in one line what was done to each column."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(" columns", style="dim"))
    named = {one_line(name): line for name, line in lines.items()}
    width = min(max(map(len, named)), _WIDEST)
    for name, line in named.items():
        console.print(f"  {name:<{width}}  {line}", markup=False)


def print_measures(model: Any, measures: Measures, label: str, target: str) -> None:
    """Table of an evaluation."""
    title = f"{model_title(model)} of {target}: {label}, {measures.n_rows} rows"
    _print_tables(title, model, measures, _scores(measures))


def _print_tables(
    title: str, model: Any, measures: Measures, facts: list[tuple[str, str]]
) -> None:
    console = Console(highlight=False)
    console.print(Text(title, style="bold"))
    console.print(_measured(model, measures))
    table = RichTable(box=None, show_header=False, padding=(0, 2, 0, 1))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(Text(name), Text(value))
    console.print(table)


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


def _measured(model: Any, measures: Measures) -> RichTable:
    table = RichTable(box=None, padding=(0, 2, 0, 1), header_style="dim")
    of_levels = measures.crossing_loss is not None
    if of_levels:
        table.add_column("level", justify="right")
        table.add_column("coverage", justify="right")
    table.add_column(LOSS_NAMES[type(model).__name__], justify="right")
    for column in measures.columns:
        start = (
            [percent(column.level or 0.0), f"{100.0 * column.coverage:.1f} %"] if of_levels else []
        )
        table.add_row(*start, f"{column.loss:.5g}")
    return table


def _scores(measures: Measures) -> list[tuple[str, str]]:
    facts = []
    if measures.crossing_loss is not None:
        facts.append(("crossing loss", f"{measures.crossing_loss:.4g}"))
    if measures.score is not None:
        facts.append((f"{measures.score_name} (explained)", f"{measures.score:.4f}"))
    return facts


def _strength(model: Any) -> list[tuple[str, str]]:
    """Alpha, and where it and the length scales are from."""
    learned, alpha = model.learned_, f"{model.alpha_:.4g}"
    if learned is None:
        by_rule = ", by rule: nothing was learned" if model.alpha is None else ""
        return [("alpha", f"{alpha}{by_rule}")]
    return [
        ("alpha", alpha),
        ("learned", f"from {learned.n_rows} rows"),
        ("held-out loss", f"{learned.criterion:.3f} of {_CONSTANT}"),
    ]


def _read(fit: Fit) -> list[tuple[str, str]]:
    """Which columns the model reads, and how much."""
    found = _importances(fit)
    if len(found.names) == 1:
        return []
    read = found.largest(_MOST_READ)
    shown = ", ".join(f"{short_name(name, _WIDEST)} {share:.2f}" for name, share in read)
    facts = [("importances", shown)] if read else []
    if found.idle:
        idle = [short_name(name, _WIDEST) for name in found.idle]
        facts.append(("idle", listed(idle)))
    return facts


def _facts(fit: Fit, measures: Measures) -> list[tuple[str, str]]:
    model, search = fit.model, fit.search
    facts = _strength(model)
    if search is not None:
        what = "alpha and width" if len(search.widths) > 1 else "alpha"
        facts.append((what, f"chosen by {search.folds}-fold cross-validation"))
        if search.at_the_end:
            others = f"{' and '.join(search.at_the_end)}: others may do better"
            facts.append(("", others))
    if _epsilon(model):
        facts.append(("epsilon", f"{_epsilon(model):.4g}"))
    facts.append(("kernel", repr(model.kernel_)))
    facts += _read(fit)
    facts += _scores(measures)
    gap = model.certificate_.relative_gap
    met = "" if gap <= model.tol else f", above the {model.tol:g} asked for"
    if model.certified_kernel_ == "features" and model.kernel_error_ > 0.0:
        met += ", of the approximated kernel"
    facts += [
        ("support vectors", f"{len(model.support_)} of {measures.n_rows}"),
        ("rank", str(model.feature_map_.rank_)),
        ("kernel error", f"{model.kernel_error_:.1e}"),
        ("relative gap", f"{gap:.1e}{met}"),
        ("seconds", f"{fit.seconds:.2f}"),
    ]
    return facts
