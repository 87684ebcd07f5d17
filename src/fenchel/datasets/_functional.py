"""Artificial functional data, functional outliers, and completion of curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from fenchel._grids import as_floats, as_grid
from fenchel._typing import FloatArray, IntArray
from fenchel._validation import BOOLEAN, COUNT, NOT_NEGATIVE, POSITIVES, Number

BoolArray = npt.NDArray[np.bool_]
RandomState = int | np.random.RandomState | None

_SCALES = (0.05, 0.1, 0.5, 0.7)
_PART = Number(0.0, 1.0)
_OUTLYING_SCALES = (0.01, 0.05, 1.0, 4.0)


def make_functional(
    n_samples: int = 200,
    *,
    n_points: int = 100,
    input_scales: Sequence[float] = _SCALES,
    output_scales: Sequence[float] = _SCALES,
    noise: float = 0.0,
    random_state: RandomState = None,
    process_state: RandomState = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Generate pairs of curves as equal mixtures of two sets of Gaussian processes.

    .. math:: x_i = \sum_{c=1}^r u_{ic}\, g^{\mathrm{in}}_c, \qquad
              y_i = \sum_{c=1}^r u_{ic}\, g^{\mathrm{out}}_c + \mathrm{noise}\; z_i,
              \qquad u_{ic} \sim \mathcal{U}[-\tfrac12, \tfrac12]

    on equidistant points of [0, 1]. z is standard normal at each point. The processes :math:`g_c`
    are drawn once for all rows and are centred with covariance
    :math:`\exp(-(\theta - \theta')^2 / (2 \sigma_c^2))`.

    Parameters
    ----------
    n_samples : int, default=200
        Number of pairs. Without ``process_state`` each call draws its own processes, so draw
        training and test rows in one call.
    n_points : int, default=100
        Number of points of a curve, including both ends of [0, 1].
    input_scales, output_scales : sequence of floats, default=(0.05, 0.1, 0.5, 0.7)
        Length scale σ_c of each process. Both sequences must have the same length.
    noise : float, default=0.0
        Standard deviation of the output noise. The paper's study of sparsity uses 0.5.
    random_state : int, RandomState instance or None, default=None
        Seed for reproducible results. With the same seed, changing ``noise`` changes the noise
        only.
    process_state : int, RandomState instance or None, default=None
        Seed of the processes. With an integer, calls with different ``random_state`` are samples
        from the same distribution, as in the paper. None draws the processes with
        ``random_state``.

    Returns
    -------
    X : ndarray of shape (n_samples, n_points)
        Input curves.
    Y : ndarray of shape (n_samples, n_points)
        Output curves.
    theta : ndarray of shape (n_points,)
        The points.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid.

    References
    ----------
    Lambert, Bouche, Szabó, d'Alché-Buc (2022), *Functional output regression with infimal
    convolution: exploring the Huber and ε-insensitive losses*, appendix B.2.1.

    Examples
    --------
    >>> from fenchel.datasets import make_functional
    >>> X, Y, theta = make_functional(150, noise=0.5, random_state=0)
    >>> X.shape, Y.shape, theta.shape
    ((150, 100), (150, 100), (100,))
    """
    COUNT(n_samples, "n_samples")
    COUNT(n_points, "n_points")
    inner = _check_scales(input_scales, "input_scales")
    outer = _check_scales(output_scales, "output_scales")
    if len(inner) != len(outer):
        raise ValueError(
            "output_scales must have as many entries as input_scales, "
            f"got {len(outer)} and {len(inner)}."
        )
    NOT_NEGATIVE(noise, "noise")
    rng = check_random_state(random_state)
    theta = np.linspace(0.0, 1.0, n_points)
    source = rng if process_state is None else check_random_state(process_state)
    before = _processes(theta, inner, source)
    after = _processes(theta, outer, source)
    mixture = rng.uniform(-0.5, 0.5, size=(n_samples, len(inner)))
    Y = mixture @ after + noise * rng.standard_normal((n_samples, n_points))
    return mixture @ before, Y, theta


def swap_outliers(
    Y: npt.ArrayLike, share: float = 0.1, *, random_state: RandomState = None
) -> tuple[FloatArray, BoolArray]:
    r"""Replace some curves by the negative of other curves (outliers of type 1).

    .. math:: \tilde y_i = -y_{\omega(i)}, \qquad i \in I,

    where I is a random set of :math:`\lfloor \tau n \rfloor` rows, and ω maps each row of I to the
    next one and the last to the first. Missing values (NaN) move with their curve.

    Parameters
    ----------
    Y : array-like of shape (n_curves, n_points)
        Curves; NaN at unobserved points.
    share : float, default=0.1
        Share τ of replaced curves, in [0, 1].
    random_state : int, RandomState instance or None, default=None
        Seed for reproducible results.

    Returns
    -------
    Y : ndarray of shape (n_curves, n_points)
        Copy with outliers.
    outlying : ndarray of bool of shape (n_curves,)
        Mask of replaced curves.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid.

    References
    ----------
    Lambert, Bouche, Szabó, d'Alché-Buc (2022), *Functional output regression with infimal
    convolution: exploring the Huber and ε-insensitive losses*, section 5.

    Examples
    --------
    >>> from fenchel.datasets import swap_outliers
    >>> swap_outliers([[1.0, 2.0], [3.0, 4.0]], share=1.0)[0]
    array([[-3., -4.],
           [-1., -2.]])
    """
    values = _check_curves(Y)
    rows = _draw_rows(len(values), share, check_random_state(random_state))
    values[rows] = -values[np.roll(rows, -1)]
    return values, np.isin(np.arange(len(values)), rows)


def process_outliers(
    Y: npt.ArrayLike,
    share: float = 0.1,
    *,
    intensity: float = 2.0,
    scales: Sequence[float] = _OUTLYING_SCALES,
    theta: npt.ArrayLike | None = None,
    add: bool = False,
    random_state: RandomState = None,
) -> tuple[FloatArray, BoolArray]:
    r"""Replace some curves by mixtures of other Gaussian processes (outliers of type 2).

    .. math:: \tilde y_i = \sum_c a_{ic}\, g_c, \qquad
              a_{ic} \sim \mathcal{U}[-\tfrac{\zeta}{2}, \tfrac{\zeta}{2}], \qquad i \in I,

    where I is a random set of :math:`\lfloor \tau n \rfloor` rows. The processes g_c are the same
    for all rows and are centred with covariance
    :math:`\exp(-(\theta - \theta')^2 / (2 \sigma_c^2))`. Missing values (NaN) remain missing.

    Parameters
    ----------
    Y, share, random_state
        As in :func:`swap_outliers`.
    intensity : float, default=2.0
        Width ζ of the range of the coefficients, >= 0.
    scales : sequence of floats, default=(0.01, 0.05, 1.0, 4.0)
        Length scale σ_c of each process.
    theta : array-like of shape (n_points,), optional
        The points; equidistant points of [0, 1] by default.
    add : bool, default=False
        Whether to add the mixture to the curve instead of replacing the curve. The paper replaces
        in section 5 and adds in appendix B.2.1.

    Returns
    -------
    Y, outlying
        As in :func:`swap_outliers`, which raises the same errors.

    References
    ----------
    Lambert et al. (2022), see :func:`swap_outliers`, section 5 and appendix B.2.1.

    Examples
    --------
    >>> from fenchel.datasets import make_functional, process_outliers
    >>> X, Y, theta = make_functional(100, random_state=0)
    >>> contaminated, outlying = process_outliers(Y, share=0.2, random_state=0)
    >>> int(outlying.sum()), bool((contaminated[~outlying] == Y[~outlying]).all())
    (20, True)
    """
    values = _check_curves(Y)
    n_points = values.shape[1]
    grid = np.linspace(0.0, 1.0, n_points) if theta is None else _grid(theta, n_points)
    NOT_NEGATIVE(intensity, "intensity")
    lengths = _check_scales(scales, "scales")
    BOOLEAN(add, "add")
    rng = check_random_state(random_state)
    rows = _draw_rows(len(values), share, rng)
    processes = _processes(grid, lengths, rng)
    half = 0.5 * intensity
    outliers = rng.uniform(-half, half, size=(len(rows), len(lengths))) @ processes
    kept = values[rows] if add else np.where(np.isnan(values[rows]), np.nan, 0.0)
    values[rows] = kept + outliers
    return values, np.isin(np.arange(len(values)), rows)


def local_outliers(
    Y: npt.ArrayLike,
    share: float = 0.1,
    *,
    share_of_points: float = 0.1,
    random_state: RandomState = None,
) -> tuple[FloatArray, BoolArray]:
    r"""Replace some observations of some curves by uniform noise (outliers of type 3).

    .. math:: \tilde y_i(\theta_j) \sim \mathcal{U}[-b, b], \qquad
              b = \max_{i, j} |y_i(\theta_j)|, \qquad i \in I,\ j \in J_i,

    where I is a random set of :math:`\lfloor \tau n \rfloor` rows, and J_i is a random set of
    :math:`\lfloor \xi m_i \rfloor` of the :math:`m_i` observations of row i.

    Parameters
    ----------
    Y, share, random_state
        As in :func:`swap_outliers`.
    share_of_points : float, default=0.1
        Share ξ of replaced observations in each of these curves, in [0, 1].

    Returns
    -------
    Y : ndarray of shape (n_curves, n_points)
        Copy with outliers.
    outlying : ndarray of bool of shape (n_curves, n_points)
        Mask of replaced values.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid.

    References
    ----------
    Lambert et al. (2022), see :func:`swap_outliers`, section 5.

    Examples
    --------
    >>> from fenchel.datasets import local_outliers, make_functional
    >>> X, Y, theta = make_functional(100, random_state=0)
    >>> contaminated, outlying = local_outliers(Y, 1.0, share_of_points=0.3, random_state=0)
    >>> set(outlying.sum(axis=1).tolist())
    {30}
    """
    values = _check_curves(Y)
    _PART(share_of_points, "share_of_points")
    rng = check_random_state(random_state)
    rows = _draw_rows(len(values), share, rng)
    # the observations of a row with the smallest random keys are a random set of them
    seen = ~np.isnan(values[rows])
    keys = np.where(seen, rng.uniform(size=seen.shape), np.inf)
    rank = np.argsort(np.argsort(keys, axis=1), axis=1)
    outlying = np.zeros(values.shape, dtype=bool)
    outlying[rows] = rank < _share_of(seen.sum(axis=1), share_of_points)[:, None]
    bound = float(np.nanmax(np.abs(values)))
    values[outlying] = rng.uniform(-bound, bound, size=int(outlying.sum()))
    return values, outlying


def fill_gaps(Y: npt.ArrayLike, theta: npt.ArrayLike | None = None) -> FloatArray:
    """Fill missing values of curves by linear interpolation.

    Values before the first or after the last observation of a curve are set to that observation.

    Parameters
    ----------
    Y : array-like of shape (n_curves, n_points)
        Curves; NaN at unobserved points.
    theta : array-like of shape (n_points,), optional
        The points; equidistant by default.

    Returns
    -------
    ndarray of shape (n_curves, n_points)
        Copy without missing values.

    Raises
    ------
    TypeError, ValueError
        If a curve has no observation, or ``theta`` is not increasing with one point per column.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.datasets import fill_gaps
    >>> fill_gaps([[np.nan, 1.0, np.nan, 2.0]])
    array([[1. , 1. , 1.5, 2. ]])
    """
    values = _check_curves(Y)
    n_points = values.shape[1]
    grid = np.arange(float(n_points)) if theta is None else _grid(theta, n_points)
    missing = np.isnan(values)
    for row in np.flatnonzero(missing.any(axis=1)):
        gap = missing[row]
        if gap.all():
            raise ValueError(
                f"each curve of Y must have an observation, got none for curve {row}."
            )
        values[row, gap] = np.interp(grid[gap], grid[~gap], values[row, ~gap])
    return values


def extend_symmetrically(
    series: Sequence[npt.ArrayLike], n_points: int | None = None
) -> FloatArray:
    r"""Extend series of different lengths to a common length by mirroring at their ends.

    .. math:: x_1, \dots, x_m \;\mapsto\;
              x_1, \dots, x_m, x_m, x_{m-1}, \dots, x_1, x_1, x_2, \dots

    truncated to ``n_points``.

    Parameters
    ----------
    series : sequence of array-likes of shape (length,) or (length, n_channels)
        The series.
    n_points : int, optional
        Common length, at least the length of the longest series, which is the default.

    Returns
    -------
    ndarray of shape (n_series, n_points) or (n_series, n_points, n_channels)
        The extended series.

    Raises
    ------
    TypeError, ValueError
        If there is no series, a series is empty, series differ in the number of channels, or
        ``n_points`` is less than the length of the longest series.

    References
    ----------
    Lambert et al. (2022), see :func:`swap_outliers`, section 5.3.

    Examples
    --------
    >>> from fenchel.datasets import extend_symmetrically
    >>> extend_symmetrically([[1.0, 2.0], [1.0, 2.0, 3.0, 4.0, 5.0]])
    array([[1., 2., 2., 1., 1.],
           [1., 2., 3., 4., 5.]])
    """
    arrays = [
        as_floats(each, f"series {i}", "an array of numbers") for i, each in enumerate(series)
    ]
    if not arrays:
        raise ValueError("series must hold at least one series, got none.")
    for i, each in enumerate(arrays):
        if each.ndim not in (1, 2) or not each.size or each.shape[1:] != arrays[0].shape[1:]:
            raise ValueError(
                "each series must have shape (length,) or (length, n_channels), not empty and "
                f"with as many channels as the first, got shape {each.shape} for series {i}."
            )
    longest = max(len(each) for each in arrays)
    if n_points is not None:
        COUNT(n_points, "n_points")
        if n_points < longest:
            raise ValueError(
                f"n_points must be at least the length of the longest series, {longest}, "
                f"got {n_points}."
            )
    order = np.arange(longest if n_points is None else n_points)
    extended = np.empty((len(arrays), len(order), *arrays[0].shape[1:]))
    for i, each in enumerate(arrays):
        turn = order % (2 * len(each))  # there and back again
        extended[i] = each[np.minimum(turn, 2 * len(each) - 1 - turn)]
    return extended


def _grid(theta: npt.ArrayLike, n_points: int) -> FloatArray:
    """The points, one for each column of the curves."""
    grid = as_grid(theta)
    if len(grid) != n_points:
        raise ValueError(
            f"theta must have one point for each of the {n_points} columns of Y, got {len(grid)}."
        )
    return grid


def _processes(theta: FloatArray, scales: FloatArray, rng: np.random.RandomState) -> FloatArray:
    """One draw of each centred Gaussian process at the points, (n_processes, n_points)."""
    squares = np.subtract.outer(theta, theta) ** 2
    draws = np.empty((len(scales), len(theta)))
    for c, scale in enumerate(scales):
        # smooth kernels are singular to rounding, so no Cholesky factor
        eigenvalues, vectors = np.linalg.eigh(np.exp(squares / (-2.0 * scale**2)))
        deviations = np.sqrt(np.maximum(eigenvalues, 0.0))
        draws[c] = vectors @ (deviations * rng.standard_normal(len(theta)))
    return draws


def _draw_rows(n: int, share: float, rng: np.random.RandomState) -> IntArray:
    """Draw a share of the rows, in increasing order."""
    _PART(share, "share")
    count = int(_share_of(np.array(n), share))
    return np.sort(rng.permutation(n)[:count])


def _share_of(count: Any, share: float) -> Any:
    """⌊share · count⌋, where a product that is an integer but for rounding is that integer."""
    return np.floor(share * count + 1e-9).astype(np.intp)


def _check_curves(Y: npt.ArrayLike) -> FloatArray:
    """Return a copy of the curves."""
    values = np.array(as_floats(Y, "Y", "an array of numbers"))
    if values.ndim != 2 or not values.size:
        raise ValueError(
            f"Y must be two-dimensional with a curve in each row, got shape {values.shape}."
        )
    if np.isinf(values).any():
        raise ValueError("Y must be finite, or NaN where not observed, got an infinite value.")
    return values


def _check_scales(value: Any, name: str) -> FloatArray:
    return np.asarray(POSITIVES(value, name), dtype=np.float64)
