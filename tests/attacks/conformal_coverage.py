"""Coverage of conformal intervals on random laws, by method and model, against its guarantee.

A try is a law, a model and a method: the share of fresh rows inside of the intervals, averaged
over samples, is compared with what is promised less four standard errors. Where the promise is an
equality (split, no ties), with four standard errors on either side.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import Ridge as LinearRidge
from sklearn.neighbors import KNeighborsRegressor

from attacks import Outcome
from fenchel import ExpectileRegressor, KernelRidge, Lasso, QuantileRegressor, Ridge
from fenchel.kernels import Gaussian, Laplacian
from fenchel.model_selection import ConformalQuantileRegressor, ConformalRegressor

IN_CI = 8
IN_FULL = 300

_FITS = 120  # of one try, leave-one-out ones included
_LEAST_SAMPLES = 16
_NEW = 400  # fresh rows for each sample
_ERRORS = 4.0  # standard errors: once in 30 000 tries by chance


class _Law(NamedTuple):
    """y = signal + spread(x) noise for x in [0, 1], and how new rows are tilted to large x."""

    noise: str
    spread: float
    tied: bool
    tilt: float

    def draw(self, rng: np.random.Generator, n: int, tilt: float = 0.0) -> tuple[Any, Any]:
        u = rng.uniform(size=n)
        if tilt:  # density 1 + tilt (2 u - 1), by inversion
            u = (np.sqrt((1.0 - tilt) ** 2 + 4.0 * tilt * u) - (1.0 - tilt)) / (2.0 * tilt)
        noise = {
            "normal": rng.standard_normal,
            "Cauchy": rng.standard_cauchy,
            "exponential": lambda k: rng.exponential(size=k),
            "signs": lambda k: 2.0 * rng.integers(0, 2, k) - 1.0,
        }[self.noise](n)
        y = np.sin(4.0 * u) + (0.3 + self.spread * u) * noise
        if self.tied:
            y = np.round(y)
        return u[:, None], y

    def weight(self, X: Any) -> Any:
        """Density of new rows over that of old ones, up to a factor."""
        return 3.0 * (1.0 + self.tilt * (2.0 * X[:, 0] - 1.0))


def attack(count: int, seed: int) -> Outcome:
    """Random laws, models, methods, sides, coverages and sizes."""
    outcome = Outcome()
    for k in range(count):
        rng = np.random.default_rng([seed, k])
        law = _law(rng)
        model, n, promised, exact = _drawn(rng, law)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # too few rows: the interval is infinite
            mean, error, n_samples = _covered(model, law, n, promised, rng)
        what = f"{model.method}{', weights' if law.tilt else ''}"
        outcome.counts[f"{what}{', exact' if exact else ''}"] += 1
        low = mean < promised - _ERRORS * error - 1e-12
        high = exact and mean > promised + _ERRORS * error + 1e-12
        if low or high:
            written = " ".join(repr(model).split())
            outcome.failures.append(
                f"seed [{seed}, {k}] {law} {written} n={n}: {mean:.4f} ± {error:.4f} covered over "
                f"{n_samples} samples, promised {promised:.4f}"
            )
    return outcome


def _law(rng: np.random.Generator) -> _Law:
    noise = str(rng.choice(["normal", "Cauchy", "exponential", "signs"]))
    tilt = float(rng.choice([0.0, 0.0, 0.9]))
    return _Law(noise, float(rng.choice([0.0, 2.0])), bool(rng.random() < 0.25), tilt)


def _drawn(rng: np.random.Generator, law: _Law) -> tuple[Any, int, float, bool]:
    """A conformal model, the number of rows, what is promised, and whether with equality."""
    method = str(rng.choice(["split", "cv+", "jackknife+"]))
    coverage = float(rng.choice([0.6, 0.8, 0.9, 0.95]))
    side = str(rng.choice(["two-sided", "two-sided", "lower", "upper"]))
    shared = {"method": method, "coverage": coverage, "side": side}
    if rng.random() < 0.4:
        levels = [
            QuantileRegressor(kernel="linear", alpha=1e-2, tol=1e-3),
            QuantileRegressor(kernel=Gaussian(0.3), alpha=1e-3, tol=1e-3, epsilon=0.3),
            ExpectileRegressor(kernel="linear", alpha=1e-2, tol=1e-3),
        ][rng.integers(3)]
        model: Any = ConformalQuantileRegressor(levels, **shared)
    else:
        plain: list[Any] = [
            KernelRidge(1e-2, kernel=Gaussian(0.3)),
            KernelRidge(1e-6, kernel=Laplacian(0.2)),  # nearly interpolates
            Ridge(1e-3),
            Lasso(0.05),
            LinearRidge(1.0),
        ]
        if not law.tilt:  # takes no weights
            plain.append(KNeighborsRegressor(1))
        model = ConformalRegressor(plain[rng.integers(len(plain))], **shared)
    n, delta = int(rng.integers(4, 25)), 1.0 - coverage
    if method == "split":
        model.set_params(cv=0.5)
        place = math.ceil(coverage * (n - n // 2 + 1) - 1e-9)
        place = min(place, n - n // 2 + 1)
        # weights make ranks random; rounded targets and signs may have equal scores
        if law.tilt or law.tied or law.noise == "signs":
            return model, n, coverage, False
        return model, n, place / (n - n // 2 + 1), True
    slack = 0.0
    if method == "cv+":
        folds = int(rng.integers(2, 5))
        n = folds * max(2, n // folds)
        model.set_params(cv=folds)
        if not law.tilt:
            slack = min(
                2.0 * (1.0 - 1.0 / folds) / (n / folds + 1.0), (1.0 - folds / n) / (folds + 1.0)
            )
    return model, n, max(0.0, 1.0 - 2.0 * delta - slack), False


def _covered(
    model: Any, law: _Law, n: int, promised: float, rng: np.random.Generator
) -> tuple[float, float, int]:
    """Mean share of fresh rows inside, its standard error, and the number of samples."""
    fits = {"split": 1, "cv+": model.cv, "jackknife+": n}[model.method]
    n_samples = max(_LEAST_SAMPLES, _FITS // fits)
    inside = np.empty(n_samples)
    for k in range(n_samples):
        X, y = law.draw(rng, n)
        X_new, y_new = law.draw(rng, _NEW, law.tilt)
        weight, new = (law.weight(Z) if law.tilt else None for Z in (X, X_new))
        low, high = model.fit(X, y, weight).predict_interval(X_new, sample_weight=new).T
        inside[k] = np.mean((low <= y_new) & (y_new <= high))
    # by ranks the coverage of one sample is Beta with this variance, about: no less is believed
    least = math.sqrt(promised * (1.0 - promised) * (1.0 / (n + 2.0) + 1.0 / _NEW) / n_samples)
    error = max(least, float(inside.std(ddof=1)) / math.sqrt(n_samples))
    return float(inside.mean()), error, n_samples
