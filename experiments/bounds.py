"""Generalization bounds beside the true risk, as the sample grows.

Four fits on synthetic data with targets in [-1, 1], known beforehand: kernel ridge, SVR, Lasso
and joint quantiles. The bound is computed from the training sample alone (`fenchel.bounds.bound`),
once as the theorems have it and once for predictions clipped to [-1, 1]; the true risk is the mean
loss on new rows. No paper prints such numbers: the page shows what the theorems are worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from experiments import harness
from experiments.drawing import BLUE, GREEN, VERMILION
from fenchel import SVR, KernelRidge, Lasso, QuantileRegressor
from fenchel.bounds import bound
from fenchel.kernels import Gaussian
from fenchel.losses import Absolute, Pinball

NAME = "bounds"
SIZES = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
QUICK_SIZES = (100, 400, 1600)
NEW_ROWS = 100_000
DELTA = 0.05
LEVELS = (0.1, 0.5, 0.9)
TUBE = 0.1
COLUMNS = 50
L1_NORM = 0.4
KERNEL = Gaussian(1.0)
FITS = {
    "kernel ridge": lambda: KernelRidge(1e-2, kernel=KERNEL),
    "SVR": lambda: SVR(epsilon=TUBE, alpha=1e-2, kernel=KERNEL),
    "Lasso": lambda: Lasso(radius=L1_NORM, fit_intercept=False),
    "joint quantiles": lambda: QuantileRegressor(LEVELS, alpha=1e-2, kernel=KERNEL),
}
THEOREMS = {
    "kernel ridge": "11.11",
    "SVR": "11.13",
    "Lasso": "11.16, corrected",
    "joint quantiles": "4.1 of the paper of 2016",
}

PAGE = """\
# What the bounds say

Generalization bounds of Mohri, Rostamizadeh, Talwalkar, *Foundations of Machine Learning*,
chapter 11, and of Sangnier, Fercoq, d'Alché-Buc (2016), computed from the training sample alone,
beside the true risk as n grows. No paper prints such numbers.

    python -m experiments.bounds
{quick}
Targets lie in [-1, 1], which is all that is stated; k(x, x) = 1, and \\|x_j\\| <= 1 for the Lasso.
The bounds hold with probability {confidence:g} and pay for the choice of norm and offset after the
fact; not so the Lasso, whose class ‖w‖₁ <= {l1_norm:g} without offset is fixed in advance.
"Clipped" is for predictions clipped to [-1, 1]. The strength alpha is {alpha:g} throughout, so
that classes hardly change with n. {splits} random samples each.

![](picture.png)

{verdict}

{table}

The risk is the mean squared error of kernel ridge and Lasso, the ε-insensitive loss of the SVR
(ε = {tube:g}) and the pinball loss summed over levels {levels}. Numbers are means over samples.
"Optimism" is the true risk less the empirical one, which is what a bound has to bound.
"""
QUICK = """
**Quick version**: small samples, few of them.
"""


def draw(name: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets in [-1, 1]."""
    random = np.random.RandomState(seed)
    if name == "Lasso":
        X = random.uniform(-1.0, 1.0, (n, COLUMNS))
        signal = X[:, :4] @ np.array([0.2, -0.15, 0.1, 0.05])
    else:
        X = random.uniform(-1.0, 1.0, (n, 1))
        signal = 0.5 * np.cos(3.0 * X[:, 0])
    spread = 0.3 + 0.2 * X[:, 0]  # at most a half, the other half is for the signal
    return X, signal + spread * random.uniform(-1.0, 1.0, n)


def mean_loss(name: str, y: np.ndarray, prediction: np.ndarray) -> float:
    """The loss that the bound is for."""
    residual = y.reshape(len(y), -1) - prediction.reshape(len(y), -1)
    if name == "joint quantiles":
        return float(Pinball(LEVELS).value(residual).mean())
    if name == "SVR":
        return float(Absolute().insensitive(TUBE).value(residual).mean())
    return float((residual**2).mean())


def one_sample(name: str, n: int, k: int) -> list[dict[str, Any]]:
    """A fit, its bounds and its true risk."""
    with threadpool_limits(1):
        X, y = draw(name, n, k)
        model = FITS[name]().fit(X, y)
        new, truth = draw(name, NEW_ROWS, 10_000 + k)
        prediction = model.predict(new)
        known = {"target_bound": 1.0, "delta": DELTA, "radius": 1.0}
        if name == "Lasso":
            known["norm_bound"] = L1_NORM
        plain, clipped = (bound(model, X, y, clip=clip, **known) for clip in (False, True))
    return [
        {
            "fit": name,
            "n": n,
            "split": k,
            "empirical": plain.terms["empirical risk"],
            "risk": mean_loss(name, truth, prediction),
            "risk_clipped": mean_loss(name, truth, np.clip(prediction, -1.0, 1.0)),
            "bound": plain.value,
            "trivial": plain.trivial,
            "choice": plain.terms["choice of the class"],
            "bound_clipped": clipped.value,
            "trivial_clipped": clipped.trivial,
            "norm": plain.constants["fitted norm"],
            "norm_bound": plain.constants["norm"],
            "offset_bound": plain.constants.get("offset", 0.0),
        }
    ]


def slope(results: pd.DataFrame, name: str) -> float:
    """Of the logarithm of what the bound adds to the empirical risk, in log n."""
    mean = results[results["fit"] == name].groupby("n").mean(numeric_only=True)
    added = (mean["bound"] - mean["empirical"]).to_numpy()
    return float(np.polyfit(np.log(mean.index.to_numpy(float)), np.log(added), 1)[0])


def failures(results: pd.DataFrame) -> int:
    """How many true risks are above a bound."""
    plain = results["risk"] > results["bound"]
    return int(plain.sum() + (results["risk_clipped"] > results["bound_clipped"]).sum())


def picture(results: pd.DataFrame) -> Figure:
    """Above, bounds and risk; below, what the bound adds, and what would have been enough."""
    figure = Figure(figsize=(14.0, 7.2), layout="constrained")
    axes = figure.subplots(2, len(FITS), sharex=True, sharey="row")
    for column, name in enumerate(FITS):
        mean = results[results["fit"] == name].groupby("n").mean(numeric_only=True)
        n = mean.index.to_numpy(float)
        top, low = axes[0, column], axes[1, column]
        top.loglog(n, mean["bound"], "o-", color=VERMILION, markersize=9, label="bound")
        top.loglog(n, mean["bound_clipped"], "s-", color=BLUE, label="bound, clipped")
        top.loglog(n, mean["risk"], "^-", color="black", label="true risk")
        top.loglog(n, mean["empirical"], ":", color="0.4", label="empirical risk")
        top.axhline(
            mean["trivial_clipped"].iloc[0],
            color=BLUE,
            linewidth=1.0,
            linestyle=(0, (5, 4)),
            label="largest loss, clipped",
        )
        top.set_title(f"{name}\n(theorem {THEOREMS[name]})", fontsize=10)
        added = (mean["bound"] - mean["empirical"]).to_numpy()
        low.loglog(n, added, "o-", color=VERMILION, markersize=9, label="bound - empirical risk")
        low.loglog(
            n,
            mean["bound_clipped"] - mean["empirical"],
            "s-",
            color=BLUE,
            label="the same, clipped",
        )
        optimism = (results["risk"] - results["empirical"]).abs()
        chosen = results["fit"] == name
        needed = optimism[chosen].groupby(results.loc[chosen, "n"]).mean()
        low.loglog(n, needed, "^-", color="black", label="|true - empirical risk|")
        low.loglog(n, 0.15 * np.sqrt(n[0] / n), "--", color=GREEN, label="slope -1/2")
        low.set_xlabel("n")
    axes[0, 0].set_ylabel("loss")
    axes[1, 0].set_ylabel("above the empirical risk")
    for row in axes:
        row[-1].legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), frameon=False)
    return figure


def verdict(results: pd.DataFrame) -> str:
    """Sentences on rates, failures, and from where bounds say something."""
    found = failures(results)
    lines = [
        f"- {found or 'None'} of the {2 * len(results)} bounds {'were' if found else 'was'} "
        "passed by the true risk.",
    ]
    for name in FITS:
        mean = results[results["fit"] == name].groupby("n").mean(numeric_only=True)
        last = mean.iloc[-1]
        useful = mean.index[mean["bound_clipped"] < mean["trivial_clipped"]]
        start = f"from n = {useful[0]}" if len(useful) else "at no n shown"
        added = last["bound_clipped"] - last["empirical"]
        shown = results[(results["fit"] == name) & (results["n"] == mean.index[-1])]
        optimism = (shown["risk"] - shown["empirical"]).abs().mean()
        lines.append(
            f"- {name}: slope {slope(results, name):.2f} of what the bound adds, in log n; "
            f"clipped, it is below the largest loss {start}, and at n = {mean.index[-1]} it adds "
            f"{added:.3f}, where {optimism:.1g} would have been enough on average."
        )
    return "\n".join(lines)


def page(results: pd.DataFrame, quick: bool) -> str:
    """The page as markdown."""
    rows = []
    for (name, n), group in results.groupby(["fit", "n"], sort=False):
        mean = group.mean(numeric_only=True)
        rows.append(
            {
                "fit": name,
                "n": n,
                "norm (its ball)": f"{mean['norm']:.2f} ({mean['norm_bound']:.2f})",
                "empirical risk": f"{mean['empirical']:.4f}",
                "true risk": f"{mean['risk']:.4f}",
                "optimism": f"{mean['risk'] - mean['empirical']:.4f}",
                "bound": f"{mean['bound']:.3f}",
                "clipped": f"{mean['bound_clipped']:.3f}",
                "largest loss, clipped": f"{mean['trivial_clipped']:.3g}",
            }
        )
    return PAGE.format(
        quick=QUICK if quick else "",
        confidence=1.0 - DELTA,
        alpha=1e-2,
        l1_norm=L1_NORM,
        splits=results["split"].nunique(),
        tube=TUBE,
        levels=", ".join(f"{level:g}" for level in LEVELS),
        verdict=verdict(results),
        table=harness.markdown_table(pd.DataFrame(rows)),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Fit all samples and write table, picture and page."""
    asked = harness.arguments(NAME, __doc__, 20, argv)
    sizes = QUICK_SIZES if asked.quick else SIZES
    tasks = [(name, n, k) for name in FITS for n in sizes for k in range(asked.splits)]
    results = asked.run(one_sample, tasks)
    asked.write(results, picture(results), page(results, asked.quick))


if __name__ == "__main__":
    main()
