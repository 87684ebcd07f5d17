"""Densities of random kernels, supports, dimensions and widths, judged by other quadrature."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from attacks import Outcome
from fenchel.kernels import Gaussian, Laplacian, Matern, Polynomial
from fenchel.positive import DensityEstimator
from fenchel.solvers.loop import credible_gap

IN_CI = 24
IN_FULL = 600
DRAWS = 20_000
DEVIATIONS = 6.0  # one in a billion of a normal mean; tails of the weights are heavier


def attack(count, seed):
    """Fit, and hold the integral, its bound and the gap against what they promise."""
    outcome = Outcome()
    for number in range(count):
        random = np.random.default_rng([seed, number])
        X, options, width = _case(random)
        name = f"[{seed}, {number}]: {options} on {X.shape}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                density = DensityEstimator(**options, max_iter=60).fit(X)
        except ValueError as error:
            if "kernel must have integrals" not in str(error):
                outcome.failures.append(f"{name}: {error}")
            outcome.counts["refused"] += 1
            continue
        outcome.counts["converged" if density.status_.converged else "early"] += 1
        outcome.failures += [f"{name}: {each}" for each in _judged(density, X, width, random)]
    return outcome


def _rough(X, Y):
    return np.exp(-np.abs(X[:, None, :] - Y).sum(axis=2))


def _case(random):
    """Rows, parameters, and the width in which values change."""
    d, n = int(random.choice([1, 1, 1, 2, 2, 3, 4])), int(random.integers(15, 60))
    unit = 10.0 ** random.uniform(-6.0, 6.0)
    X = random.standard_normal((n, d)) * unit
    if random.random() < 0.3:
        X[: n // 2] *= 0.01
    width = unit * 10.0 ** random.uniform(-1.5, 0.7)
    kinds = [Gaussian(width), Laplacian(width), Matern(width, 1.5), Matern(width, 2.5)]
    low, high = X.min() - 0.1 * unit, X.max() + 0.1 * unit
    supports = [None, (low, high), (low, np.inf), (-np.inf, high)]
    kernel = kinds[random.integers(4)]
    support = supports[random.integers(4)]
    special = random.random()
    if special < 0.1:
        kernel, support = Polynomial(2, 1.0 / unit**2), (low, high)
    elif special < 0.25 and d < 3:
        unit, X, support = 1.0, X / unit, (low / unit, high / unit)
        kernel, width = _rough, 1.0
    elif special < 0.4:
        kernel, width = None, X.std(axis=0)
    options = {
        "kernel": kernel,
        "support": support,
        "alpha": 10.0 ** random.uniform(-7.0, -1.0),
        "trace_penalty": float(random.choice([0.0, 1e-3])),
        "tol": 1e-5,
    }
    return X, options, width


def _judged(density, X, width, random):
    """Sentences on what does not hold."""
    error, claimed = density.integral_error_, density.integral()
    if abs(claimed - 1.0) > error + 1e-10:
        yield f"the integral is {claimed}, and 1 up to {error:.1e} was promised"
    gap = credible_gap(density.certificate_)
    if density.status_.converged and not gap <= density.tol:
        yield f"converged at {density.certificate_}"
    if not np.isfinite(gap) and density.status_.converged:
        yield f"a gap below rounding: {density.certificate_}"
    low, high = density.model_.support_.bounds
    if density.kernel is None:  # learned, or by the rule
        width = np.ravel(density.kernel_.length_scale)
    if X.shape[1] == 1:
        found, doubt = _by_panels(density, width, float(low[0]), float(high[0])), 1e-9
    else:
        found, doubt = _by_draws(density, X, width, low, high, random)
    if not abs(found - claimed) <= error + doubt:
        yield f"the integral is {found} up to {doubt:.1e}, not {claimed} up to {error:.1e}"


def _by_panels(density, width, low, high):
    """Gauss and Legendre on panels between landmarks, no wider than the kernel nearby."""
    z = np.sort(density.feature_map_.landmarks_[:, 0])
    steps = np.max(width) * np.concatenate([np.arange(0.0, 6.0, 0.5), np.geomspace(6.0, 60.0, 25)])
    cuts = np.concatenate(
        [[low, high], (z[:, None] + steps).ravel(), (z[:, None] - steps).ravel()]
    )
    cuts = np.unique(np.clip(cuts, max(low, cuts[2:].min()), min(high, cuts[2:].max())))
    if np.isfinite(low) and np.isfinite(high):
        cuts = np.unique(np.concatenate([[low], cuts, [high]]))
    nodes, weights = np.polynomial.legendre.leggauss(12)
    half = 0.5 * np.diff(cuts)[:, None]
    points = cuts[:-1, None] + half * (nodes + 1.0)
    return float((half * weights).ravel() @ density.model_(points.reshape(-1, 1)))


def _by_draws(density, X, width, low, high, random):
    """Importance sampling from a mixture of Student's t around rows, and a uniform part."""
    n, d = X.shape
    bounded = bool(np.all(np.isfinite(low) & np.isfinite(high)))
    uniform = 0.3 if bounded else 0.0
    spread = np.broadcast_to(width, d)
    points = X[random.integers(n, size=DRAWS)] + spread * random.standard_t(3, (DRAWS, d))
    flat = random.random(DRAWS) < uniform
    if bounded:
        points[flat] = random.uniform(low, high, (int(flat.sum()), d))
    proposal = np.zeros(DRAWS)
    for centre in X:
        proposal += stats.t.pdf((points - centre) / spread, 3).prod(axis=1)
    proposal *= (1.0 - uniform) / (n * np.prod(spread))
    if bounded:
        proposal += uniform / np.prod(high - low) * density.model_.support_.contains(points)
    values = density.model_(points) / proposal
    return float(values.mean()), float(DEVIATIONS * values.std() / np.sqrt(DRAWS))
