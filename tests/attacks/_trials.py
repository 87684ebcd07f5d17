"""What the attacks on certificates share: one try, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from attacks import Outcome, _cases
from attacks._cases import Data, Fit
from judge.certificates import ANOTHER, Judged, Named, judge

FEATURES = "the certificate is of the kernel of the features"
KNOWN = {ANOTHER, FEATURES}
"""Kinds of findings that are counted only, as docstrings say them."""


class Case(NamedTuple):
    """An estimator, its data, and what the judge knows of its problem."""

    model: Any
    data: Data
    loss: Any
    coupling: np.ndarray


Judge = Callable[[Any, Fit], tuple[Judged, str]]
"""From a case and how its fit ended to what is found, and a word on what it is about."""


def of_kernels(tried: Case, ended: Fit) -> tuple[Judged, str]:
    """What the judge says of a fitted kernel estimator."""
    model, data = tried.model, tried.data
    targets = np.broadcast_to(data.y.reshape(len(data.y), -1), (len(data.y), len(tried.coupling)))
    weight = np.ones(len(data.y)) if data.weight is None else data.weight
    random = model.features == "fourier"
    named = Named(model, data.X, targets, weight, tried.loss, tried.coupling, random)
    kinds = {"random features": random, "learned": model.learned_ is not None}
    about = " and ".join(kind for kind, holds in kinds.items() if holds)
    return judge(named, data.fresh, warned=ended.warned), about


def tries(
    name: str, make: Callable[[int, int], Any], judged: Judge, count: int, seed: int
) -> Outcome:
    """Make so many cases, fit and judge them."""
    outcome = Outcome()
    for index in range(count):
        attempt(outcome, name, make(seed, index), judged, f"{name}, seed {seed}, index {index}")
    return outcome


def attempt(outcome: Outcome, name: str, tried: Any, judged: Judge, which: str) -> None:
    """One try."""
    model = tried.model
    ended = _cases.fit(model, tried.data)
    if ended.refused:
        ended = _cases.fit(model.set_params(solver="auto"), tried.data)
    if ended.error is not None:
        outcome.counts["error"] += 1
        kind = type(ended.error).__name__
        outcome.failures.append(f"{which}: {model!r}: {kind}: {ended.error}")
        return
    verdict, about = judged(tried, ended)
    if verdict.kinds - KNOWN:
        found = "; ".join(f"{kind}: {text}" for kind, text in verdict.findings)
        outcome.failures.append(f"{which}: {model!r} ({_told(tried)}): {found}")
    end = "warned" if ended.warned else "converged"
    parts = [f"{type(model).__name__} {end}", about, *sorted(verdict.kinds & KNOWN)]
    outcome.counts[", ".join(part for part in parts if part)] += 1


def _told(tried: Any) -> str:
    weighted = ", weights" if tried.data.weight is not None else ""
    rank = getattr(getattr(tried.model, "feature_map_", None), "rank_", None)
    return f"X {tried.data.X.shape}{weighted}{'' if rank is None else f', rank {rank}'}"
