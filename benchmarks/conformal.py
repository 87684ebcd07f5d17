"""Conformal intervals: what cross-validation costs, in fits."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Row, timed
from fenchel import KernelRidge, QuantileRegressor
from fenchel.datasets import make_heavy_tails, make_sine_quantiles
from fenchel.model_selection import ConformalQuantileRegressor, ConformalRegressor

N, FOLDS, ROUNDS = 2000, 10, 9


def cross_validated(slow: bool) -> list[Row]:
    """CV+ against one fit, in turn; and jackknife+ in closed form."""
    rows = []
    for name, make in (("S", make_sine_quantiles), ("H", make_heavy_tails)):
        X, y = make(N, random_state=0)[:2]
        ridge = KernelRidge(1e-3, learn=False)
        quantiles = QuantileRegressor([0.05, 0.5, 0.95], alpha=1e-3, learn=False)
        for plain, wrapper in (
            (ridge, ConformalRegressor(ridge, method="cv+", cv=FOLDS)),
            (quantiles, ConformalQuantileRegressor(quantiles, method="cv+", cv=FOLDS)),
        ):
            pairs = []
            for _ in range(ROUNDS):
                one, _ = timed(lambda p=plain, X=X, y=y: p.fit(X, y), repeats=3)
                all_folds, _ = timed(lambda w=wrapper, X=X, y=y: w.fit(X, y), repeats=1, warm_up=0)
                pairs.append((one, all_folds))
            ratio = float(np.median([both / one for one, both in pairs]))
            one, both = np.median(pairs, axis=0)
            note = f"one fit {1e3 * one:.1f} ms, CV+ {1e3 * both:.0f} ms"
            case = f"data {name}, n={N}: CV+ of {FOLDS} folds, {type(plain).__name__} / one fit"
            rows.append(Row(case, ratio, "x", "<= 12 x", ratio <= 12.0, note))
        model = ConformalRegressor(ridge, method="jackknife+")
        one, _ = timed(lambda r=ridge, X=X, y=y: r.fit(X, y), repeats=3)
        seconds, fit = timed(lambda m=model, X=X, y=y: m.fit(X, y), repeats=3)
        new, _ = timed(lambda f=fit, X=X: f.predict_interval(X), repeats=3)
        note = f"{seconds:.2f} s, intervals of {N} new rows {new:.2f} s"
        rows.append(
            Row("  jackknife+, KernelRidge / one fit", seconds / one, "x", "-", None, note)
        )
    return rows
