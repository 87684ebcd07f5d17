"""The page of a report, section by section."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fenchel.inspection import has_moved_offsets, learned_of, model_title, percent, short_name
from fenchel.report import _html as h
from fenchel.report._facts import Column, Facts
from fenchel.report._intervals import IntervalScores
from fenchel.report._levels import CONFIDENCE
from fenchel.report._pictures import MOST_FANS, Picture
from fenchel.report._scores import Score
from fenchel.report._words import (
    about_certificate,
    about_distance,
    about_intervals,
    about_rows,
    warnings_of,
)

_MOST_COLUMNS = 30
_NAME = 80
_PARAMETERS = ("alpha", "level_gamma", "epsilon", "non_crossing", "fit_intercept")
_ROWS = {
    "held-out": "held-out rows",
    "training": "rows of the fit",
    "mixed": "rows, {seen} of them of the fit",
    "unknown": "rows, held-out or not",
}


def page(facts: Facts, drawn: list[Picture]) -> str:
    """The whole page."""
    title = f"{model_title(facts.model)} of {short_name(facts.target, _NAME)}"
    sections = [
        *_head(title, facts),
        *_fitted(facts),
        *_scores(facts),
        *_intervals(facts),
        *_importances(facts, drawn),
        *_pictures(facts, drawn),
        *_calibration(facts, drawn),
        *_crossings(facts),
        *_certificate(facts, drawn),
        *_distances(facts),
        *_features(facts.columns),
    ]
    return h.document(title, h.element("main", *sections))


def _head(title: str, facts: Facts) -> Iterator[h.Html]:
    yield h.element("h1", title)
    label = f"{short_name(facts.data, _NAME)}, " if facts.data else ""
    rows = "one row" if facts.n_rows == 1 else f"{facts.n_rows} rows"
    yield h.element("p", f"A report on {label}{rows}", class_="lead")
    yield h.element("p", about_rows(facts))
    yield h.element("h2", "Warnings", id="warnings")
    found = warnings_of(facts)
    if found:
        yield h.element("ul", *(h.element("li", w) for w in found), class_="warnings")
    else:
        yield h.element("p", "None: no check of this report found a problem.", class_="fine")


def _fitted(facts: Facts) -> Iterator[h.Html]:
    model, training = facts.certified, facts.training
    rows: list[tuple[object, object]] = [("model", type(facts.model).__name__)]
    if model is not facts.model:
        rows.append(("around", type(model).__name__))
    if facts.levels is not None:
        levels = ", ".join(percent(float(t)) for t in facts.levels)
        rows.append((f"levels of its {facts.statistic}", levels))
    rows.append(("target", short_name(facts.target, _NAME)))
    rows.append(("features", h.count(len(facts.columns))))
    if training is not None and training.data:
        rows.append(("fitted on", short_name(training.data, _NAME)))
    if facts.n_training is not None:
        rows.append(("rows of the fit", h.count(facts.n_training)))
    if facts.data:
        rows.append(("report on", short_name(facts.data, _NAME)))
    rows.append(("rows of the report", h.count(facts.n_rows)))
    if hasattr(model, "kernel_"):
        rows.append(("kernel", repr(model.kernel_)))
    for name in _PARAMETERS:
        value = getattr(model, f"{name}_", getattr(model, name, None))  # as learned, as given
        if value is not None:
            rows.append((name, f"{value:.4g}" if isinstance(value, float) else str(value)))
    rows += [*_learned(facts), *_offsets(model), *_carried(facts)]
    yield h.element("h2", "What was fitted", id="fitted")
    yield h.pairs(rows)


def _learned(facts: Facts) -> Iterator[tuple[object, object]]:
    learned = learned_of(facts.model)
    if learned is not None:
        rows = h.count(learned.n_rows)
        yield "learned", h.joined(["from ", rows, " rows of the fit"])
        unit = f"held-out loss in units of the best {learned.constant}'s"
        yield unit, h.number(learned.criterion)


def _offsets(model: Any) -> Iterator[tuple[object, object]]:
    if (of := _offsets_of(model)) is not None:
        yield "offsets", f"of {of} rows; the certificate is of the offsets of the fit"


def _offsets_of(model: Any) -> str | None:
    """The rows that the offsets were moved to."""
    if not has_moved_offsets(model):
        return None
    return "training" if model.refit_offsets == "train" else "held-out"


def _carried(facts: Facts) -> Iterator[tuple[object, object]]:
    model, n_rows = facts.certified, facts.n_training
    support = getattr(model, "support_", None)
    if support is not None:
        known = n_rows is not None and model is facts.model  # which else may have seen fewer
        of = f" of {n_rows} rows" if known else ""
        yield "support vectors", h.joined([h.count(len(support)), of])
    feature_map = getattr(model, "feature_map_", None)
    if feature_map is not None:
        yield "rank", h.count(feature_map.rank_)
    if hasattr(model, "kernel_error_"):
        error = model.kernel_error_
        yield "kernel error", h.number(error, f"{error:.1e}")


def _scores(facts: Facts) -> Iterator[h.Html]:
    yield h.element("h2", "Scores", id="scores")
    of_fit = facts.training is not None
    whose = "the rows of the fit" if of_fit else "these rows, which favours the constant"
    yield h.element(
        "p",
        f"Mean loss of the model and of a constant, the best one of {whose}. The gain is the mean "
        "difference of the two, ± its standard error for independent rows; explained is the share "
        "of the loss of the constant that the model saves: 1 is perfect, 0 no better than "
        "the constant.",
    )
    rows = [
        (
            score.name,
            h.number(score.model),
            h.number(score.baseline),
            "–"
            if score.explained is None
            else h.number(score.explained, f"{score.explained:.3g}"),
            _gain(score),
            h.number(score.constant),
        )
        for score in facts.scores
    ]
    head = ("mean", "model", "constant", "explained", "gain", "value of the constant")
    yield h.table(head, rows, f"Scores on {_scored(facts)}")
    if facts.log_likelihood is not None:
        yield h.element(
            "p",
            "Mean log-likelihood, whose sum the fit maximizes less a penalty: ",
            h.number(facts.log_likelihood),
            " a row.",
        )


def _gain(score: Score) -> h.Html:
    if np.isnan(score.error):  # of one row
        return h.number(score.gain)
    return h.joined([h.number(score.gain), " ± ", h.number(score.error, f"{score.error:.2g}")])


def _intervals(facts: Facts) -> Iterator[h.Html]:
    found = facts.intervals
    if found is None:
        return
    yield h.element("h2", "Intervals", id="intervals")
    for sentence in about_intervals(found):
        yield h.element("p", sentence)
    share = (
        h.number(found.coverage, percent(found.coverage)),
        h.percent(found.observed),
        h.joined([h.percent(found.low), " to ", h.percent(found.high)]),
        "within" if found.inside else "outside",
    )
    head = ("coverage asked for", "observed", f"{percent(CONFIDENCE)} band", "")
    yield h.table(head, [share], f"Share of {_scored(facts)} inside of their intervals")
    score = h.number(found.score)
    rows: list[tuple[object, object]] = [(f"pinball loss of the {found.side} end", score)]
    if found.two_sided:
        rows = [("mean width", h.number(found.width)), ("mean interval score", score)]
    if found.calibrated is not None:
        rows.append(("calibrated by", found.calibrated.method))
        rows.append(("rows that calibrate", h.count(found.calibrated.n_rows)))
    yield h.pairs(rows)
    if found.levels:
        yield _levels_inside(found)


def _levels_inside(found: IntervalScores) -> h.Html:
    squared = "squared " if found.has_expectiles else ""
    rows = (
        (h.number(c.level, percent(c.level)), h.percent(c.observed), h.number(c.loss))
        for c in found.levels
    )
    head = ("level", "at or below", f"mean {squared}pinball loss")
    return h.table(head, rows, "Levels of the model inside, before they are calibrated")


def _importances(facts: Facts, drawn: list[Picture]) -> Iterator[h.Html]:
    found = facts.importances
    if found is None or len(found.names) == 1:
        return
    yield h.element("h2", "What the model reads", id="importances")
    idle = [short_name(name, _NAME) for name in found.idle]
    more = f", … ({len(idle)} in all)" if len(idle) > _MOST_COLUMNS else ""
    yield h.element(
        "p",
        "The importance of a feature is the variance of predictions that is due to it, alone or "
        "together with others, on rows of the fit, as a share of the sum over all features. It "
        "says what the model does with features, not what they do to the target. ",
        f"With less than a thousandth: {', '.join(idle[:_MOST_COLUMNS])}{more}." if idle else "",
    )
    largest = found.largest(_MOST_COLUMNS)
    if largest:
        rows = (
            (short_name(name, _NAME), h.number(share, f"{share:.3f}")) for name, share in largest
        )
        number = len(found.names) - len(idle)
        caption = f"Importances, the largest first{_cut(number)}"
        yield h.table(("feature", "importance"), rows, caption)
    yield from _of(drawn, "importances")


def _scored(facts: Facts) -> str:
    rows = _ROWS[facts.kind_of_rows].format(seen=facts.n_seen)
    return f"{len(facts.scored)} {rows}"


def _calibration(facts: Facts, drawn: list[Picture]) -> Iterator[h.Html]:
    if not facts.calibration:
        return
    yield h.element("h2", "Calibration", id="calibration")
    by_construction = ""
    if facts.kind_of_rows in ("training", "mixed"):
        # rows of the fit lie nearer to the curves than those that offsets were moved to
        of_held_out = _offsets_of(facts.certified) == "held-out"
        there = "that are right for new rows are too far apart there"
        seen = f"levels {there if of_held_out else 'fit them better than new rows'}"
        by_construction = f" Training rows do not show this: {seen}."
    band = percent(CONFIDENCE)
    yield h.element(
        "p",
        "A quantile of level τ should have the share τ of new rows at or below it. The band "
        f"holds the observed share of {band} of samples of this size if the level is right, one "
        f"level at a time.{by_construction}",
    )
    rows = [
        (
            h.number(c.level, percent(c.level)),
            h.percent(c.observed),
            h.joined([h.percent(c.low), " to ", h.percent(c.high)]),
            "within" if c.inside else "outside",
        )
        for c in facts.calibration
    ]
    head = ("nominal level", "observed", f"{band} band", "")
    yield h.table(head, rows, f"Shares of {_scored(facts)} at or below each quantile")
    yield from _of(drawn, "calibration")


def _crossings(facts: Facts) -> Iterator[h.Html]:
    found = facts.crossings
    if found is None:
        return
    yield h.element("h2", "Crossings", id="crossings")
    count = h.count(found.rows)
    by = [", by up to ", h.number(found.largest)] if found.rows else []
    yield h.element(
        "p",
        "Curves of neighbouring levels cross at ",
        count,
        f" of {found.n_rows} rows (",
        h.percent(found.share, 2),
        ")",
        *by,
        f". {found.guarantee}",
    )


def _certificate(facts: Facts, drawn: list[Picture]) -> Iterator[h.Html]:
    sentences = about_certificate(facts)
    if not sentences:
        return
    model, certificate = facts.certified, facts.certified.certificate_
    yield h.element("h2", "Certificate", id="certificate")
    for sentence in sentences:
        yield h.element("p", sentence)
    gap = float(certificate.relative_gap)
    rows: list[tuple[object, object]] = [("relative gap", h.number(gap, f"{gap:.1e}"))]
    if hasattr(model, "tol"):
        rows.append(("tolerance", h.number(model.tol, f"{model.tol:g}")))
    rows += [
        ("objective of the model", h.number(certificate.primal, f"{certificate.primal:.8g}")),
        ("no model goes below", h.number(certificate.dual, f"{certificate.dual:.8g}")),
    ]
    if hasattr(model, "n_iter_"):
        rows.append(("iterations", str(model.n_iter_)))
    if hasattr(model, "status_"):
        rows.append(("the solver says", model.status_.message))
    yield h.pairs(rows)
    yield from _of(drawn, "certificate")


def _distances(facts: Facts) -> Iterator[h.Html]:
    if facts.far is None and not hasattr(facts.certified, "kernel_"):
        return
    yield h.element("h2", "Extrapolation", id="extrapolation")
    yield h.element("p", about_distance(facts))
    if facts.far is not None:
        yield h.pairs([("far rows", h.percent(facts.far.share))])


def _pictures(facts: Facts, drawn: list[Picture]) -> Iterator[h.Html]:
    shown = list(_of(drawn, "pictures"))
    if not shown:
        return
    yield h.element("h2", "Pictures", id="pictures")
    n_numbers = sum(column.numbers is not None for column in facts.columns)
    if n_numbers > MOST_FANS:
        names = [] if facts.importances is None else facts.importances.names
        known = any(column.name in names for column in facts.columns)
        which = "most important" if known else "first"
        yield h.element(
            "p", f"Along the {which} {MOST_FANS} of {n_numbers} features that are numbers."
        )
    yield from shown


def _of(drawn: list[Picture], section: str) -> Iterator[h.Html]:
    for one in drawn:
        if one.section == section:
            yield h.picture(one.svg, one.alt, one.caption)


def _features(columns: list[Column]) -> Iterator[h.Html]:
    yield h.element("h2", "Features", id="features")
    numbers = [c for c in columns if c.numbers is not None]
    words = [c for c in columns if c.numbers is None]
    if numbers:
        rows = (
            (short_name(c.name, _NAME), *(h.number(v) for v in c.numbers or ()))
            for c in numbers[:_MOST_COLUMNS]
        )
        caption = f"Numbers, in the rows of the report{_cut(len(numbers))}"
        yield h.table(("feature", "least", "median", "largest"), rows, caption)
    if words:
        rows_of_words = (
            (short_name(c.name, _NAME), h.count(c.n_labels), short_name(c.most_frequent, _NAME))
            for c in words[:_MOST_COLUMNS]
        )
        caption = f"Labels, in the rows of the report{_cut(len(words))}"
        yield h.table(("feature", "labels", "most frequent"), rows_of_words, caption)


def _cut(number: int) -> str:
    return f": the first {_MOST_COLUMNS} of {number}" if number > _MOST_COLUMNS else ""
