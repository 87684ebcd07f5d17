"""ε-insensitive losses against three earlier ways to data sparsity.

Sections 4.2 and 4.3 of Sangnier, Fercoq, d'Alché-Buc (2017) compare their losses with those of
Park and Kim (2011) for one quantile, and with the sparse ridge regression of Lim et al. (2014)
for several outputs, in formulas; the introduction names Zhang, Liu, Wu (2016). Here they are
measured: loss on test rows against the share of support vectors, over 10 random splits, 0.7 for
training and 0.3 for testing, of standardized data. The first two are the same as theirs at ε = 0;
1/(λn) is chosen there, from 10 values between 1e-3 and 1e3 by 3-fold cross-validation, and kept
for every ε. The third has a penalty on coefficients in the place of the norm, and no other
strength.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from experiments import harness
from experiments.comparisons.sparse import (
    ParkKim,
    largest_penalty,
    sparse_quantile,
    sparse_ridge,
)
from experiments.drawing import BLUE, GREEN, VERMILION, bare
from fenchel import SVR, KernelRidge, QuantileRegressor
from fenchel.datasets import load
from fenchel.kernels import DistanceQuantile, Gaussian
from fenchel.losses import Pinball

NAME = "epsilon_comparisons"
LEVEL = 0.25
STRENGTHS = np.geomspace(1e-3, 1e3, 10)  # 1/(λn)
EPSILONS = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0)
SHARES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3)  # of the penalty that zeroes all
COLOURS = (BLUE, VERMILION, GREEN)
QUICK_EPSILONS, QUICK_SHARES, QUICK_ROWS = (0.2, 1.0), (1e-2, 0.2), 110
RIDGE_TOL = 1e-4
SUPPORTS = (5, 10, 20, 40)  # percent
TARGETS = ("pH80", "e80", "c80")  # of gilgais, the deepest of three soil layers
METHODS = {
    "quantile": {
        "insensitive": "ε-insensitive pinball",
        "other": "Park & Kim",
        "constrained": "Zhang et al.",
    },
    "ridge": {"insensitive": "ε-insensitive square", "other": "Lim et al."},
}

PAGE = """\
# ε-insensitive losses against other ways to data sparsity

Sangnier, Fercoq, d'Alché-Buc (2017), *Data sparse nonparametric regression with ε-insensitive
losses*, compare their losses with two earlier ones in formulas (sections 4.2 and 4.3), name a
third way to sparsity in the introduction, and give no numbers. These are measured, means ±
standard deviations over {splits} random splits.

    python -m experiments.epsilon_comparisons --jobs 2
{quick}
![Loss against support vectors](picture.png)

Those of Park and Kim and of Lim et al. are the same as theirs at ε = 0, where 1/(λn) is chosen by
3-fold cross-validation; then ε grows. Further left is sparser, further down is better. Gaussian
kernel whose σ is the 0.7-quantile of the distances between training rows; standardized data.

## One quantile: Park and Kim (2011), Zhang, Liu and Wu (2016)

Data set mcycle, level {level:g}, pinball loss ×100. Both losses are solved by Newton to a
relative gap of 10⁻⁶. The ε of max(0, ρ(ξ) - ε) is 2τ(1 - τ) times the one in the table, so that
both tubes are equally wide; that of Park and Kim reaches from -ε/(1 - τ) to ε/τ. Zhang, Liu and
Wu keep the pinball loss, restrict h to Σ k(·, x_i) c_i, and bound Σ |c_i| in the place of the
norm of h: another problem, and no weighting of this one. It is solved as a linear program with
the multiplier of the bound, of which the table has shares of the smallest one that leaves the
best constant; there is no other strength to choose. The largest gap was {program:.1e} of the best
constant's loss.

{quantile}

## Several outputs: Lim et al. (2014)

Data set gilgais: pH, conductivity and chloride 80–90 cm deep, from the same two layers higher up;
mean squared error ×100, without intercept as in the paper's comparison. Lim et al. restrict h to
1/(λn) Σ k(·, x_i) c_i and penalize Σ ‖c_i‖: by the rules of Fermat their ε acts on K times what
the ε-insensitive loss acts on. Its values are shares of the smallest one that leaves no support
vector. Solved by FISTA to a duality gap of 10⁻⁴ of what there is to gain, or as far as 20 000
steps get; the largest gap was {gap:.1e} of it.

{ridge}

## At the same sparsity

Loss ×100 at equal percentages of support vectors, interpolated between the measured values of ε
(–: outside of them).

{verdict}

{conclusion} The paper argues for its losses on other grounds: one construction for every loss
and any number of outputs, several quantiles included.
"""
QUICK = """
**Quick version**: few rows, splits and values of ε. The numbers only show that it runs.
"""


def chosen_strength(
    fit: Callable[[np.ndarray, np.ndarray, float], Any],
    judge: Callable[[np.ndarray, np.ndarray], float],
    X: np.ndarray,
    y: np.ndarray,
) -> float:
    """1/(λn) by cross-validation; the value itself is kept from folds to fits."""
    losses = [
        np.mean(
            [judge(y[b], fit(X[a], y[a], strength).predict(X[b])) for a, b in KFold(3).split(X)]
        )
        for strength in STRENGTHS
    ]
    return float(STRENGTHS[np.argmin(losses)])


def pinball(y: np.ndarray, prediction: np.ndarray) -> float:
    return float(Pinball(LEVEL).value((y - prediction)[:, None]).mean())


def squared(y: np.ndarray, prediction: np.ndarray) -> float:
    return float(np.mean((y - prediction) ** 2))


def _settings(X: np.ndarray, strength: float) -> dict[str, Any]:
    width = DistanceQuantile(0.7).measure(X)
    return {"kernel": Gaussian(length_scale=width), "alpha": 1.0 / (strength * len(X))}


def quantile(k: int, quick: bool) -> list[dict[str, Any]]:
    """One level on mcycle: the ε-insensitive loss and Park and Kim's."""
    X, y = harness.standardized("mcycle")
    train, test = harness.split(len(y), k)

    def fit(X: np.ndarray, y: np.ndarray, strength: float) -> QuantileRegressor:
        return QuantileRegressor(LEVEL, **_settings(X, strength)).fit(X, y)

    strength = chosen_strength(fit, pinball, X[train], y[train])
    settings = _settings(X[train], strength)
    records = []
    for epsilon in QUICK_EPSILONS if quick else EPSILONS:
        width = 2.0 * LEVEL * (1.0 - LEVEL) * epsilon
        models = {
            "insensitive": QuantileRegressor(LEVEL, epsilon=epsilon, **settings),
            "other": SVR(ParkKim(LEVEL, width), **settings),
        }
        for method, model in models.items():
            model.fit(X[train], y[train])
            loss = pinball(y[test], model.predict(X[test]))
            kept = len(model.support_) / len(train)
            gap = model.certificate_.relative_gap
            records.append((method, epsilon, loss, kept, gap))
    kernel = settings["kernel"]
    gram, cross = kernel(X[train]), kernel(X[test], X[train])
    largest = largest_penalty(gram, y[train], LEVEL)
    for share in QUICK_SHARES if quick else SHARES:
        found = sparse_quantile(gram, y[train], LEVEL, share * largest)
        loss = pinball(y[test], cross @ found.coefficients + found.offset)
        kept = float(np.mean(found.coefficients != 0.0))
        records.append(("constrained", share, loss, kept, found.relative_gap))
    return _records("quantile", k, records)


def ridge(k: int, quick: bool) -> list[dict[str, Any]]:
    """Three outputs of gilgais: the ε-insensitive square loss and Lim et al."""
    X, y = _layers()
    if quick:
        X, y = X[:QUICK_ROWS], y[:QUICK_ROWS]
    train, test = harness.split(len(y), k)

    def fit(X: np.ndarray, y: np.ndarray, strength: float) -> KernelRidge:
        return KernelRidge(fit_intercept=False, **_settings(X, strength)).fit(X, y)

    strength = chosen_strength(fit, squared, X[train], y[train])
    settings = _settings(X[train], strength)
    records = []
    for epsilon in QUICK_EPSILONS if quick else EPSILONS:
        model = SVR(
            "squared_epsilon_insensitive", epsilon=epsilon, fit_intercept=False, **settings
        ).fit(X[train], y[train])
        loss = squared(y[test], model.predict(X[test]))
        kept = len(model.support_) / len(train)
        gap = model.certificate_.relative_gap
        records.append(("insensitive", epsilon, loss, kept, gap))
    kernel = settings["kernel"]
    gram, cross = kernel(X[train]), kernel(X[test], X[train])
    largest = np.linalg.norm(gram @ y[train], axis=1).max()
    start: np.ndarray | None = None
    for share in sorted(QUICK_SHARES if quick else SHARES, reverse=True):
        found = sparse_ridge(gram, y[train], strength, share * largest, start, RIDGE_TOL)
        start = found.coefficients
        loss = squared(y[test], strength * cross @ start)
        kept = float(np.mean(np.any(start != 0.0, axis=1)))
        records.append(("other", share, loss, kept, found.relative_gap))
    return _records("ridge", k, records)


def _layers() -> tuple[np.ndarray, np.ndarray]:
    """The two upper soil layers of gilgais, and the deepest, standardized."""
    data = load("gilgais")
    columns = dict(zip(data.feature_names, np.asarray(data.data, dtype=float).T, strict=True))
    columns[data.target_name] = np.asarray(data.target, dtype=float)
    upper = [values for name, values in columns.items() if name not in TARGETS]
    lower = [columns[name] for name in TARGETS]
    scale = StandardScaler().fit_transform
    return scale(np.column_stack(upper)), scale(np.column_stack(lower))


def _records(
    pair: str, k: int, rows: list[tuple[str, float, float, float, float]]
) -> list[dict[str, Any]]:
    return [
        {
            "pair": pair,
            "split": k,
            "method": method,
            "epsilon": epsilon,
            "loss_x100": 100.0 * loss,
            "support_percent": 100.0 * share,
            "relative_gap": gap,
        }
        for method, epsilon, loss, share, gap in rows
    ]


def measure(pair: str, k: int, quick: bool) -> list[dict[str, Any]]:
    """One split for a pair of methods."""
    with threadpool_limits(1):
        return {"quantile": quantile, "ridge": ridge}[pair](k, quick)


def _means(results: pd.DataFrame) -> pd.DataFrame:
    groups = results.groupby(["pair", "method", "epsilon"])
    means = groups[["loss_x100", "support_percent"]].mean()
    return means.assign(deviation=groups.loss_x100.std()).reset_index()


def _table(means: pd.DataFrame, pair: str) -> str:
    columns: dict[str, list[str]] = {}
    for method, label in METHODS[pair].items():
        own = means[(means.pair == pair) & (means.method == method)]
        if method != "other" or pair == "ridge":
            name = "ε" if method == "insensitive" else "share"
            columns[name] = [f"{epsilon:g}" for epsilon in own.epsilon]
        columns[label] = [
            f"{line.loss_x100:.1f} ± {line.deviation:.1f} ({line.support_percent:.0f} %)"
            for line in own.itertuples()
        ]
    return harness.markdown_table(pd.DataFrame(columns))


def loss_at(means: pd.DataFrame, pair: str, method: str, support: float) -> float:
    """Loss at a percentage of support vectors, between the measured ones; else NaN."""
    own = means[(means.pair == pair) & (means.method == method)].sort_values("support_percent")
    return float(np.interp(support, own.support_percent, own.loss_x100, np.nan, np.nan))


def _verdict(means: pd.DataFrame) -> str:
    rows = []
    for pair, labels in METHODS.items():
        for method, label in labels.items():
            losses = {at: loss_at(means, pair, method, at) for at in SUPPORTS}
            cells = {f"{at} %": "–" if np.isnan(x) else f"{x:.1f}" for at, x in losses.items()}
            rows.append({"loss ×100": label, **cells})
    return harness.markdown_table(pd.DataFrame(rows))


def _conclusion(means: pd.DataFrame) -> str:
    """Who has the lower loss at equal sparsity, as measured."""
    sentences = []
    for pair, labels in METHODS.items():
        for method in list(labels)[1:]:
            differences = [
                loss_at(means, pair, "insensitive", at) - loss_at(means, pair, method, at)
                for at in SUPPORTS
            ]
            known = [difference for difference in differences if not np.isnan(difference)]
            ours = sum(difference < 0.0 for difference in known)
            sentences.append(
                f"The {labels['insensitive']} loss is lower at {ours} of {len(known)} percentages "
                f"that both have, that of {labels[method]} at the others."
            )
    return "\n".join(sentences)


def picture(means: pd.DataFrame) -> Figure:
    """Loss against the percentage of support vectors for both pairs."""
    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    titles = {"quantile": "mcycle, one quantile", "ridge": "gilgais, three outputs"}
    for axes, (pair, labels) in zip(figure.subplots(1, 2), METHODS.items(), strict=True):
        for (method, label), color in zip(labels.items(), COLOURS, strict=False):
            own = means[(means.pair == pair) & (means.method == method)].sort_values("epsilon")
            axes.plot(own.support_percent, own.loss_x100, "o-", ms=4, color=color, label=label)
        axes.set(title=titles[pair], xlabel="support vectors, %", xlim=(0, 102))
        axes.set_ylabel("pinball loss ×100" if pair == "quantile" else "squared error ×100")
        axes.legend(frameon=False)
        bare(axes)
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    """Run all splits of both pairs, then write the table, the picture and the page."""
    asked = harness.arguments(NAME, __doc__, 10, argv)
    tasks = [(pair, k, asked.quick) for pair in METHODS for k in range(asked.splits)]
    results = asked.run(measure, tasks)
    means = _means(results)
    text = PAGE.format(
        splits=asked.splits,
        quick=QUICK if asked.quick else "",
        level=LEVEL,
        quantile=_table(means, "quantile"),
        ridge=_table(means, "ridge"),
        verdict=_verdict(means),
        conclusion=_conclusion(means),
        program=results.relative_gap[results.method == "constrained"].max(),
        gap=results.relative_gap[(results.pair == "ridge") & (results.method == "other")].max(),
    )
    asked.write(results, picture(means), text)


if __name__ == "__main__":
    main()
