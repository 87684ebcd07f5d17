"""The kernel between levels, which couples quantiles or expectiles that are learned together."""

from __future__ import annotations

import numpy as np

from fenchel._typing import FloatArray

_EIGENVALUE_CUT = 1e-13  # of the largest: smaller ones are the rounding of eigh


def level_coupling(levels: FloatArray, gamma: float) -> FloatArray:
    r"""Return a factor of the Gaussian kernel between levels.

    .. math:: (S S^\top)_{jk} = \exp(-\gamma\, (\tau_j - \tau_k)^2)

    Parameters
    ----------
    levels : ndarray of shape (p,)
        The levels τ.
    gamma : float
        At least 0. 0 makes all levels share one function up to offsets, ``inf`` learns each
        by itself.

    Returns
    -------
    ndarray of shape (p, q)
        S, with as many columns as the matrix has eigenvalues above 1e-13 times the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import level_coupling
    >>> S = level_coupling(np.array([0.1, 0.5]), 1.0)
    >>> (S @ S.T).round(4)
    array([[1.    , 0.8521],
           [0.8521, 1.    ]])

    References
    ----------
    Sangnier, Fercoq, d'Alché-Buc (2016), Joint quantile regression in vector-valued RKHSs.
    """
    if gamma == np.inf:
        return np.eye(len(levels))
    if gamma == 0.0:
        return np.ones((len(levels), 1))
    matrix = np.exp(-gamma * np.subtract.outer(levels, levels) ** 2)
    values, vectors = np.linalg.eigh(matrix)
    kept = values > _EIGENVALUE_CUT * values[-1]
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))
