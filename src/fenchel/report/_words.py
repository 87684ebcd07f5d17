"""Sentences of a report: on the rows, the certificate and the warnings."""

from __future__ import annotations

import math
from typing import Any

from fenchel.features import KERNEL_ERROR_LEVEL
from fenchel.inspection import percent
from fenchel.positive import HeteroscedasticRegressor
from fenchel.report._distance import QUANTILE
from fenchel.report._facts import Facts
from fenchel.report._intervals import IntervalScores
from fenchel.report._levels import CONFIDENCE, LEAST_ROWS, too_far_out

_ROUNDING = 1e-15
FAR_SHARE = 0.05  # of the rows, from which on the report warns

_NOT_HELD_OUT = {
    "training": "Not held-out: the fit has seen these rows.",
    "mixed": "Not held-out: the fit has seen {seen} of the {n} rows.",
    "unknown": "It is not known whether the rows are held-out.",
}


def about_rows(facts: Facts) -> str:
    """How the rows of the report relate to the training rows."""
    n, seen = facts.n_rows, facts.n_seen
    if seen is None:
        return (
            "The model does not say which rows it was fitted on. If these are among them, scores "
            "and calibration look better than they are."
        )
    none, those = (
        f"none of the {n} rows was",
        f"These rows are not held-out: all {n} were in the fit",
    )
    if n == 1:
        none, those = "the row was not", "This row is not held-out: it was in the fit"
    if seen == 0:
        return (
            f"Held-out: {none} in the fit, so that scores and calibration are fair to the model."
        )
    if seen == n:
        return f"{those}. Scores and calibration look better than they are on new rows."
    share = f"{seen} of the {n} rows equal rows of the fit, features and target"
    if facts.kind_of_rows == "held-out":
        return f"{share}. Scores and calibration are of the other {len(facts.scored)}, held-out."
    return (
        f"{share}, which leaves too few others to score by themselves: these rows are not "
        "held-out, and scores look better than they are."
    )


def about_certificate(facts: Facts) -> list[str]:
    """The certificate in words for a statistician; empty for models without one."""
    model = facts.certified
    certificate = getattr(model, "certificate_", None)
    if certificate is None:
        return []
    unit = (
        "one nat a row"  # a log-likelihood, which has no zero to be relative to
        if isinstance(model, HeteroscedasticRegressor)
        else "the objective of the best constant model"
    )
    sentences = [
        "Solving the same problem more exactly could lower its objective, the penalized loss on "
        f"the rows of the fit, by at most {_small(float(certificate.relative_gap))} of {unit}. "
        "This is proved: a feasible point of the dual problem is a bound that no model of this "
        "kind, with this kernel and this strength, can go below.",
        "It is a statement on the optimization. How well the model predicts new rows is measured "
        "by scores, not by a certificate.",
    ]
    if model is not facts.model:
        sentences.append("It is of the model inside, which intervals were calibrated around.")
    error = getattr(model, "kernel_error_", 0.0)
    if error > 1e-8 and model.certified_kernel_ == "features":
        sentences.append(
            f"It holds for the kernel as it was computed with, which leaves out {error:.2g} of "
            "the trace of the given kernel."
        )
    return sentences


def _small(share: float) -> str:
    """A share, rounded up."""
    if share <= _ROUNDING:
        return "the rounding error"
    if share > 0.005:
        return f"{math.ceil(1000.0 * share) / 10.0:g} %" if math.isfinite(share) else "any part"
    parts = 1.0 / share
    unit = 10.0 ** (math.floor(math.log10(parts)) - 1)
    return f"one part in {math.floor(parts / unit) * unit:,.0f}"


_HELD_OUT = {
    "split": "rows that the model was not fitted to",
    "cv+": "rows, each by a model without its fold",
    "jackknife+": "rows, each by a model without it",
}


def about_intervals(found: IntervalScores) -> list[str]:
    """How intervals were made, and what their numbers mean."""
    share, calibrated = percent(found.coverage), found.calibrated
    how = f"Intervals hold {share} of new rows if the model is right: they were not calibrated."
    chance = "of the rows"
    if calibrated is not None:
        how = (
            f"Intervals were calibrated to hold {share} of new rows like those of the fit, on "
            f"average over rows, on {calibrated.n_rows} {_HELD_OUT[calibrated.method]}."
        )
        chance = "of these rows and of those that calibrate"
    return [
        f"{how} The band holds the observed share of {percent(CONFIDENCE)} of samples of this "
        f"size if they do: it is due to the choice {chance}.",
        "The interval score is the width, and for a target outside "
        f"{2.0 / (1.0 - found.coverage):.4g} times its distance from the interval; smaller is "
        "better."
        if found.two_sided
        else f"Only {found.side} ends were asked for, so that there is no width.",
    ]


def about_distance(facts: Facts) -> str:
    """What counts as far, and which rows were checked."""
    far = facts.far
    if far is None:
        return (
            "Distances are not known: this model keeps no rows of its fit, or has no kernel "
            "of pairs of rows."
        )
    some = "" if far.n_rows == facts.n_rows else f", drawn at random from {facts.n_rows}"
    return (
        f"{far.n_far} of {far.n_rows} rows{some} ({percent(far.share, 3)}) are far from the rows "
        f"of the fit. Far means: the distance in the space of the kernel to the nearest of the "
        f"{far.n_kept} rows that the model keeps is more than {far.threshold:.4g}, the "
        f"{percent(QUANTILE)} quantile of the distances of kept rows to their nearest neighbours. "
        f"The median row of this report has {far.median:.4g}. Predictions of far rows rest on "
        "the kernel more than on data."
    )


def warnings_of(facts: Facts) -> list[str]:
    """All warnings that a reader should know before using the numbers."""
    found = [*_of_fit(facts.certified), *_of_levels(facts), *_of_rows(facts), *_of_scores(facts)]
    return [*found, *_of_intervals(facts), *facts.warnings]


def _of_fit(model: Any) -> list[str]:
    found = []
    status = getattr(model, "status_", None)
    if status is not None and not status.converged:
        found.append(f"The solver stopped before its tolerance: {status.message}.")
    error = getattr(model, "kernel_error_", 0.0)
    if error > KERNEL_ERROR_LEVEL and model.certified_kernel_ == "features":
        found.append(
            f"The kernel was truncated: its features leave out {percent(error, 3)} of the trace "
            "(kernel_error_), and the model is that of the truncated kernel. Increase rank to "
            "come closer."
        )
    return found


def _of_levels(facts: Facts) -> list[str]:
    if facts.levels is None:
        return []
    looked_at = []
    if facts.n_training is not None:
        looked_at.append((facts.n_training, "the fit has", "learn how such a curve varies"))
    if facts.calibration:
        looked_at.append((len(facts.scored), "the calibration is of", "judge it"))
    found = []
    for n_rows, what, purpose in looked_at:
        levels = too_far_out(facts.levels, n_rows)
        if levels:
            found.append(
                f"Level{'s' * (len(levels) > 1)} {', '.join(map(percent, levels))}: {what} "
                f"{n_rows} rows, fewer than {LEAST_ROWS:g} of which are expected beyond, "
                f"too few to {purpose}."
            )
    return found


def _of_rows(facts: Facts) -> list[str]:
    found = []
    if facts.kind_of_rows in _NOT_HELD_OUT:
        said = _NOT_HELD_OUT[facts.kind_of_rows]
        found.append(said.format(seen=facts.n_seen, n=facts.n_rows))
    if facts.far is not None and facts.far.share > FAR_SHARE:
        found.append(
            f"Extrapolation: {percent(facts.far.share, 3)} of the rows are far from those of the "
            "fit in the distance of the kernel."
        )
    if facts.crossings is not None and facts.crossings.rows:
        found.append(
            f"Curves of neighbouring levels cross at {facts.crossings.rows} of "
            f"{facts.crossings.n_rows} rows, by up to {facts.crossings.largest:.4g}."
        )
    return found


def _of_scores(facts: Facts) -> list[str]:
    worse = [score.name for score in facts.scores if score.gain <= 0.0 < score.baseline]
    found = []
    if worse:
        found.append(f"The model is no better than a constant by {', '.join(worse)}.")
    outside = [c for c in facts.calibration if not c.inside]
    if outside and facts.kind_of_rows != "training":
        levels = ", ".join(f"{percent(c.level)} (is {percent(c.observed, 3)})" for c in outside)
        found.append(
            f"Not calibrated on these rows, by more than chance explains at a level: {levels}."
        )
    return found


def _of_intervals(facts: Facts) -> list[str]:
    found = facts.intervals
    if found is None:
        has_some = facts.levels is None and hasattr(facts.model, "predict_interval")
        lacking = (
            "The intervals of this model are not measured: they need weights of new rows, or are "
            "of a transformed target."
        )
        return [lacking] if has_some else []
    share = percent(found.coverage)
    if found.n_infinite:
        few = "" if found.calibrated is None else f" than {found.calibrated.n_rows}"
        return [
            f"Intervals of {found.n_infinite} of {found.n_rows} rows are infinitely wide: a "
            f"coverage of {share} needs more calibration rows{few}."
        ]
    if found.inside or facts.kind_of_rows in ("training", "mixed"):
        return []
    than = "more" if found.observed > found.high else "fewer"
    return [
        f"Intervals for {share} of new rows hold {percent(found.observed, 3)} of these rows, "
        f"{than} than chance explains."
    ]
