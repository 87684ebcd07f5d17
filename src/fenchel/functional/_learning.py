r"""Learning of kernel and alpha from a few coordinates of curves.

In the eigenfunctions :math:`\psi_l` of the output kernel, with eigenvalues :math:`\lambda_l`, the
problem with the squared loss falls apart into one for each coordinate :math:`\int y_i \psi_l
\, \mathrm{d}\mu`, all with the same kernel, and with the strengths :math:`\alpha / \lambda_l`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from fenchel._quantiles import least_quantile
from fenchel._typing import FloatArray
from fenchel.functional._representation import LossChoice, spectrum_beyond_rounding
from fenchel.functional.curves import Curves
from fenchel.kernels import Gaussian
from fenchel.learning.rows import has_many_columns
from fenchel.losses import BoxQuadratic, Loss, Pointwise, Squared

_RESIDUALS = np.geomspace(1e-30, 1e30, 61)[:, None]  # a tube may be wide in units of y
_ROWS_A_COLUMN = 10
_FAR = 5.0  # times the median length of curves
N_COORDINATES = 8
"""Four saw too little of curves with details, and each costs as much as the first."""


def kernels_of_many_columns(X: FloatArray, most_rows: int) -> list[Kernel]:
    """What else to choose among where rows hold curves or little about each column.

    Neighbouring points of a smooth curve have one length scale, which needs less data than one
    for each of them. At most ``most_rows`` distinct rows are learned from.
    """
    return [Gaussian("shared")] if has_many_columns(X, most_rows, _ROWS_A_COLUMN) else []


class Coordinates(NamedTuple):
    """Those in which curves are longest."""

    targets: FloatArray
    """(n, p)."""
    coupling: FloatArray
    """Roots of the eigenvalues over ``unit``, on the diagonal, (p, p)."""
    unit: float
    """The mean of the eigenvalues: alpha of the curves is this times alpha of the coordinates."""


def coordinates_of(
    curves: Curves, between: FloatArray, weight: FloatArray, count: int = N_COORDINATES
) -> Coordinates:
    """Return the coordinates with the largest mean squares, none where the output kernel is zero.

    Parameters
    ----------
    curves : Curves
        Complete.
    between : ndarray of shape (m, m)
        The output kernel between the points.
    weight : ndarray of shape (n,)
    count : int
        At most so many.
    """
    root = np.sqrt(curves.measure)
    values, vectors = spectrum_beyond_rounding(root[:, None] * between * root)
    sizes = np.abs(vectors)
    # the first of the largest: on an even grid two of them are the same but for rounding
    first = (sizes >= (1.0 - 1e-6) * sizes.max(axis=0)).argmax(axis=0)
    signs = np.sign(vectors[first, np.arange(len(values))])
    # copies of a curve are one row of the product, which rounds rows differently
    distinct, place = np.unique(curves.values, axis=0, return_inverse=True)
    targets = ((root * distinct) @ (vectors * signs))[place.ravel()]  # numpy 2.0: a second axis
    squares = np.where(values > 1e-10 * values[-1], weight @ targets**2, -1.0)
    largest = np.argsort(-squares, kind="stable")[:count]
    largest = largest[squares[largest] >= 0.0]
    unit = float(values[largest].mean()) if len(largest) else 1.0
    coupling = np.diag(np.sqrt(values[largest] / unit))
    return Coordinates(np.ascontiguousarray(targets[:, largest]), coupling, unit)


def loss_of_coordinates(choice: LossChoice, n_coordinates: int) -> Loss:
    """Return the loss itself if its slopes are bounded, and the squared loss otherwise.

    So the Huber and the absolute loss are the criterion themselves, which is robust to outliers. A
    loss is made symmetric, as coordinates have no sign, and its tube is removed.
    """
    single = _even(choice)
    return Squared() if single is None else Pointwise(single, np.ones(n_coordinates))


def bounds_influence(choice: LossChoice) -> bool:
    """Whether the slopes of a loss are bounded."""
    return _even(choice) is not None


def is_even(choice: LossChoice) -> bool:
    """Whether a loss is symmetric."""
    single = choice.on(np.ones(1))
    with np.errstate(over="ignore", invalid="ignore"):  # of losses that grow exponentially
        both = single.value(_RESIDUALS), single.value(-_RESIDUALS)
    return np.array_equal(*both, equal_nan=True)


def losses_of(choice: LossChoice, curves: Curves, other: FloatArray) -> FloatArray:
    """Losses of other curves (n, m) or (m,) where these are observed, (n,).

    Squared ones, unless a loss is not the same on both sides.
    """
    if is_even(choice):
        return np.asarray(np.nansum(curves.measure * (curves.values - other) ** 2, axis=1))
    residual = np.nan_to_num(np.sqrt(curves.measure) * (curves.values - other))
    return choice.on(curves.measure).value(residual)


def constant_of(choice: LossChoice) -> str | Loss:
    """What a constant curve is at each point: the mean, or for such a loss what it elicits."""
    return "mean" if is_even(choice) else choice.on(np.ones(1)).output(0, 1) or "mean"


def _even(choice: LossChoice) -> Loss | None:
    """The loss of a number whose slope is that of both sides on average, None where unbounded."""
    single = choice.on(np.ones(1))
    if not np.isfinite(single.lipschitz):
        return None
    if is_even(choice) and single.epsilon == 0.0:
        return single
    if isinstance(choice.loss, str):
        return choice._replace(level=0.5, epsilon=0.0).on(np.ones(1))
    own = single.output(0, 1)
    box = None if own is None else own.box(1)
    if box is None:
        return None
    slope, curvature = 0.5 * (box.upper - box.lower), 0.5 * (box.below + box.above)
    return BoxQuadratic(-slope, slope, curvature, curvature)


def unit_of_loss(choice: LossChoice, curves: Curves, weight: FloatArray) -> float:
    """Mean loss over mean square of curves, which makes units of the loss those of a strength.

    Without curves that are far from all others.
    """
    if choice.loss == "squared":
        return 0.5
    rows = np.nan_to_num(np.sqrt(curves.measure) * curves.values)
    square = np.einsum("ij,ij->i", rows, rows)
    near = square <= _FAR**2 * least_quantile(square, weight, 0.5)
    mean = float(weight[near] @ square[near])
    loss = float(weight[near] @ choice.on(curves.measure).value(rows)[near])
    return loss / mean if loss > 0.0 and mean > 0.0 else 0.5


def are_noise(gains: FloatArray) -> bool:
    """Whether the sum of what single curves gain is within its standard error."""
    gains = gains / (np.abs(gains).max() or 1.0)  # whose squares may overflow
    return not gains.sum() > np.sqrt(len(gains)) * gains.std()
