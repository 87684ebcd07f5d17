"""Kernels between the outputs of a joint fit: between quantile levels, or given as a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh

from fenchel._typing import FloatArray
from fenchel.kernels.operator_valued import output_matrix

_EIGENVALUE_CUT = 1e-13  # of the largest: smaller ones are the rounding of eigh


def level_coupling(levels: FloatArray, gamma: float) -> FloatArray:
    r"""Return a factor of the Gaussian kernel between levels.

    .. math:: (S S^\top)_{jk} = \exp(-\gamma\, (\tau_j - \tau_k)^2)

    Parameters
    ----------
    levels : ndarray of shape (p,)
        The levels τ.
    gamma : float
        At least 0. With 0 all levels share one function up to their offsets; with ``inf`` each
        level is fitted separately.

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


def output_coupling(coupling: Any, n_outputs: int) -> FloatArray:
    """Return a factor of the matrix between outputs; None stands for the identity.

    Parameters
    ----------
    coupling : array-like of shape (n_outputs, n_outputs) or None
        Symmetric positive semi-definite matrix B.
    n_outputs : int
        Number of columns of y.

    Returns
    -------
    ndarray of shape (n_outputs, n_outputs)
        S with S Sᵀ = B.

    Raises
    ------
    ValueError
        If B is not such a matrix; the message says why.

    Examples
    --------
    >>> from fenchel.kernels import output_coupling
    >>> S = output_coupling([[2.0, 1.0], [1.0, 2.0]], 2)
    >>> (S @ S.T).round(12)
    array([[2., 1.],
           [1., 2.]])
    """
    if coupling is None:
        return np.eye(n_outputs)
    matrix = output_matrix(coupling, "coupling")
    if len(matrix) != n_outputs:
        raise ValueError(
            f"coupling must have one row for each column of y, {n_outputs} here, got shape "
            f"{matrix.shape}"
        )
    values, basis = eigh(matrix)
    return np.asarray(basis * np.sqrt(np.maximum(values, 0.0)))


def size_of_coupling(coupling: Any) -> float:
    """Mean diagonal of a matrix between outputs, in which strengths are measured; 1 for None.

    Examples
    --------
    >>> from fenchel.kernels.levels import size_of_coupling
    >>> size_of_coupling([[4.0, 1.0], [1.0, 2.0]])
    3.0
    """
    if coupling is None:
        return 1.0
    return float(np.mean(np.diagonal(np.asarray(coupling, dtype=np.float64)))) or 1.0


def check_coupling(coupling: Any, name: str) -> None:
    """Raise ValueError unless the coupling is None or a positive semi-definite matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import check_coupling
    >>> check_coupling(np.eye(2), "coupling")
    >>> check_coupling(-np.eye(2), "coupling")
    Traceback (most recent call last):
    ...
    ValueError: coupling must be positive semi-definite, got a matrix with the eigenvalue -1
    """
    if coupling is not None:
        output_matrix(coupling, name)
