"""Complexity of function classes: Rademacher complexity and pseudo-dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fenchel._typing import FloatArray
from fenchel._validation import check_dense, random_of
from fenchel.bounds._result import check_count, check_real

Oracle = Callable[[FloatArray], FloatArray]
"""Maps signs (m, n) to the suprema of Σ σ_i h(x_i) over the class for each row, (m,)."""

_EXACT = 16
_CHUNK = 2**20


class Estimate(NamedTuple):
    """A Monte Carlo estimate with its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.bounds import kernel_ball, rademacher_complexity
    >>> estimate = rademacher_complexity(kernel_ball(np.eye(3), norm=1.0), 3, random_state=0)
    >>> round(estimate.value, 3), round(estimate.standard_error, 3)
    (0.577, 0.0)
    """

    value: float
    standard_error: float
    """Standard error; 0 if all signs were enumerated."""


def rademacher_complexity(
    oracle: Oracle, n: int, n_draws: int | None = 1000, random_state: Any = None
) -> Estimate:
    r"""Empirical Rademacher complexity of a class, from an oracle for its suprema.

    .. math:: \hat R_S(H) = \frac1n\, E_\sigma \sup_{h \in H} \sum_{i=1}^n \sigma_i h(x_i)

    with independent random signs σ. The definition has no absolute values and no factor 2.

    Parameters
    ----------
    oracle : callable
        Maps an array of signs (m, n) to the m suprema of Σ_i σ_i h(x_i), for example
        :func:`kernel_ball`, :func:`l1_ball` or :func:`finite_class`.
    n : int
        Number of rows x_i.
    n_draws : int or None, default=1000
        Number of random sign vectors; None enumerates all 2^n of them, for n <= 16.
    random_state : int, RandomState or None, default=None
        Seed of the signs; None is the fixed seed 0.

    Returns
    -------
    Estimate
        The estimate, with ``value`` and ``standard_error``.

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, Foundations of Machine Learning, definition 3.1.

    Examples
    --------
    For two functions with opposite signs everywhere, it is E|σ_1 + σ_2| / 2:

    >>> import numpy as np
    >>> from fenchel.bounds import finite_class, rademacher_complexity
    >>> rademacher_complexity(finite_class([[1.0, 1.0], [-1.0, -1.0]]), 2, None)
    Estimate(value=0.5, standard_error=0.0)
    """
    n = check_count("n", n)
    if n_draws is None:
        if n > _EXACT:
            raise ValueError(
                f"n_draws=None enumerates 2^n signs, for n at most {_EXACT}, got n={n}"
            )
        codes = np.arange(2**n)[:, None] >> np.arange(n)
        signs = np.asarray(2.0 * (codes & 1) - 1.0, dtype=np.float64)
        return Estimate(float(_suprema(oracle, signs).mean() / n), 0.0)
    n_draws = check_count("n_draws", n_draws, low=2)
    random = random_of(random_state)
    size = max(1, _CHUNK // n)
    parts = [
        _suprema(oracle, 2.0 * random.randint(0, 2, (min(size, n_draws - start), n)) - 1.0)
        for start in range(0, n_draws, size)
    ]
    values = np.concatenate(parts) / n
    return Estimate(float(values.mean()), float(values.std(ddof=1) / np.sqrt(n_draws)))


def _suprema(oracle: Oracle, signs: FloatArray) -> FloatArray:
    values = np.asarray(oracle(signs), dtype=np.float64)
    if values.shape != (len(signs),):
        raise ValueError(
            f"oracle must return one supremum for each of {len(signs)} rows of signs, got an "
            f"array of shape {values.shape}"
        )
    return values


def kernel_ball(gram: npt.ArrayLike, norm: float) -> Oracle:
    r"""Supremum oracle of an RKHS ball, the functions with norm at most Λ.

    .. math:: \sup_{\|h\| \le \Lambda} \sum_i \sigma_i h(x_i) = \Lambda \sqrt{\sigma^\top K \sigma}

    Parameters
    ----------
    gram : array-like of shape (n, n)
        Gram matrix K, symmetric and positive semi-definite.
    norm : float
        Radius Λ of the ball.

    Returns
    -------
    Oracle

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.bounds import kernel_ball
    >>> kernel_ball(np.eye(4), 3.0)(np.ones((1, 4)))
    array([6.])
    """
    norm = check_real("norm", norm)
    K = _table("gram", gram)
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"gram must be a square matrix, got shape {K.shape}")

    def supremum(signs: FloatArray) -> FloatArray:
        squares = np.einsum("ij,ij->i", signs @ K, signs)
        return np.asarray(norm * np.sqrt(np.maximum(squares, 0.0)))

    return supremum


def l1_ball(X: npt.ArrayLike, norm: float) -> Oracle:
    r"""Supremum oracle of an l1 ball, the linear functions with l1 norm at most Λ₁.

    .. math:: \sup_{\|w\|_1 \le \Lambda_1} \sum_i \sigma_i w^\top x_i
              = \Lambda_1 \Big\| \sum_i \sigma_i x_i \Big\|_\infty

    Parameters
    ----------
    X : array-like of shape (n, n_features)
        The rows x_i.
    norm : float
        Radius Λ₁ of the ball.

    Returns
    -------
    Oracle

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.bounds import l1_ball
    >>> l1_ball([[1.0, 0.0], [0.0, 2.0]], 3.0)(np.array([[1.0, -1.0]]))
    array([6.])
    """
    norm = check_real("norm", norm)
    rows = _table("X", X)
    return lambda signs: np.asarray(norm * np.abs(signs @ rows).max(axis=1))


def finite_class(values: npt.ArrayLike) -> Oracle:
    """Supremum oracle of a finite class, given by function values.

    Parameters
    ----------
    values : array-like of shape (n_hypotheses, n)
        Values h(x_i), one row for each function.

    Returns
    -------
    Oracle

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.bounds import finite_class
    >>> finite_class([[1.0, 2.0], [0.0, -1.0]])(np.array([[1.0, -1.0]]))
    array([1.])
    """
    table = _table("values", values)
    return lambda signs: np.asarray((signs @ table.T).max(axis=1))


def kernel_ball_complexity(trace: float, norm: float, n: int) -> float:
    r"""Upper bound on the empirical Rademacher complexity of a kernel ball.

    .. math:: \hat R_S \le \frac{\Lambda \sqrt{\mathrm{tr} K}}{n} \le \frac{\Lambda r}{\sqrt n}

    by Jensen's inequality, as :math:`E\, \sigma^\top K \sigma = \mathrm{tr} K`. It is at most a
    factor √2 too large (Khintchine). With trace = n r², where r² bounds k(x, x), it also bounds
    the expected complexity over samples.

    Parameters
    ----------
    trace : float
        Trace of the Gram matrix.
    norm : float
        Radius Λ of the ball.
    n : int
        Number of rows.

    Returns
    -------
    float
        Upper bound.

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, theorem 6.12, used in theorems 11.11, 11.13, 11.14.

    Examples
    --------
    >>> from fenchel.bounds import kernel_ball_complexity
    >>> kernel_ball_complexity(100.0, 2.0, 100)
    0.2
    """
    n = check_count("n", n)
    return check_real("norm", norm) * float(np.sqrt(check_real("trace", trace))) / n


def l1_ball_complexity(radius: float, norm: float, n_features: int, n: int) -> float:
    r"""Upper bound on the Rademacher complexity of linear functions in an l1 ball.

    .. math:: \hat R_S \le r_\infty \Lambda_1 \sqrt{\frac{2 \log(2d)}{n}}

    by Massart's lemma for the 2d vertices. ``radius`` may be any bound on the root mean square of
    each column; the maximum of \|x_ij\| is such a bound.

    Parameters
    ----------
    radius : float
        Bound r∞ with \|\|x\|\|_∞ <= r∞.
    norm : float
        Radius Λ₁ of the ball.
    n_features : int
        Number of features d.
    n : int
        Number of rows.

    Returns
    -------
    float
        Upper bound.

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, theorem 11.15.

    Examples
    --------
    >>> from fenchel.bounds import l1_ball_complexity
    >>> round(l1_ball_complexity(1.0, 1.0, 50, 1000), 4)
    0.096
    """
    n, d = check_count("n", n), check_count("n_features", n_features)
    size = check_real("radius", radius) * check_real("norm", norm)
    return size * float(np.sqrt(2.0 * np.log(2.0 * d) / n))


def positive_model_complexity(norm: float, radius: float, n: int) -> float:
    r"""Upper bound on the Rademacher complexity of non-negative models.

    .. math:: R_n\{x \mapsto \varphi(x)^\top A \varphi(x):
              A \succeq 0,\ \|A\|_F \le L\} \le \frac{L c^2}{\sqrt n}, \qquad \|\varphi(x)\| \le c

    as :math:`f_A(x) = \langle A, \varphi\varphi^\top \rangle` lies in the ball of radius L of
    the kernel k², whose diagonal is at most c⁴. The published bound is twice as large.

    Parameters
    ----------
    norm : float
        Bound L on the Frobenius norm, or on any larger norm such as the trace.
    radius : float
        Bound c on ‖φ(x)‖.
    n : int
        Number of rows.

    Returns
    -------
    float
        Upper bound.

    References
    ----------
    Marteau-Ferey, Bach, Rudi (2020), Non-parametric models for non-negative functions,
    theorem 5.

    Examples
    --------
    >>> from fenchel.bounds import positive_model_complexity
    >>> positive_model_complexity(2.0, 1.0, 100)
    0.2
    """
    radius = check_real("radius", radius)
    return kernel_ball_complexity(check_count("n", n) * radius**4, norm, n)


def affine_pseudo_dimension(n_features: int, fit_intercept: bool = True) -> int:
    """Pseudo-dimension of affine functions of d features: d + 1, or d without intercept.

    It is the dimension of the vector space of functions. Clipping or any other increasing
    transformation does not increase it. It is the pseudo-dimension of the *functions*, not of
    their losses, see :func:`pseudo_dimension_bound`.

    Parameters
    ----------
    n_features : int
        Number of features d.
    fit_intercept : bool
        Whether there is an intercept.

    Returns
    -------
    int
        Pseudo-dimension.

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, theorems 11.6 and 11.7.

    Examples
    --------
    >>> from fenchel.bounds import affine_pseudo_dimension
    >>> affine_pseudo_dimension(3)
    4
    """
    return check_count("n_features", n_features) + bool(fit_intercept)


def fat_shattering_dimension(norm: float, radius: float, margin: float) -> int:
    r"""Upper bound on the fat-shattering dimension of an RKHS ball.

    .. math:: \mathrm{fat}_\gamma\{h : \|h\| \le \Lambda\}
              \le \Big\lfloor \Big(\frac{\Lambda r}{\gamma}\Big)^2 \Big\rfloor,
              \qquad k(x, x) \le r^2

    Points are shattered with margin γ if there are thresholds t_i such that for all signs b a
    function of the class has b_i (h(x_i) - t_i) >= γ. Adding this for b and -b gives m γ <= Λ ‖Σ
    b_i k(., x_i)‖, whose mean over signs is at most Λ r √m. Rows with k(x_i, x_j) = 0 attain the
    bound.

    Parameters
    ----------
    norm : float
        Radius Λ of the ball.
    radius : float
        Bound r with k(x, x) <= r².
    margin : float
        Margin γ > 0.

    Returns
    -------
    int
        Upper bound.

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, definitions 11.9 and 11.10.

    Examples
    --------
    >>> from fenchel.bounds import fat_shattering_dimension
    >>> fat_shattering_dimension(norm=3.0, radius=1.0, margin=1.0)
    9
    """
    size = check_real("norm", norm) * check_real("radius", radius)
    count = (size / check_real("margin", margin, open_low=True)) * (size / margin)
    if not np.isfinite(count):
        raise ValueError(
            "norm times radius over margin must have a square that is a floating-point number, "
            f"got norm={norm:g}, radius={radius:g} and margin={margin:g}"
        )
    return int(count * (1.0 + 1e-12))


def _table(name: str, values: npt.ArrayLike) -> FloatArray:
    check_dense(values, name)
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or 0 in array.shape or not np.all(np.isfinite(array)):
        raise ValueError(
            f"{name} must be a two-dimensional array of finite numbers, got shape {array.shape}"
        )
    return array
