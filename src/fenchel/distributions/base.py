"""Base class of predicted distributions, for many rows at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from fenchel._typing import ArrayLike, FloatArray
from fenchel._validation import COUNT, SHARE


class Distribution(ABC):
    """Base class of n distributions of real numbers, one for each row.

    Methods with values y as argument (:meth:`cdf`, :meth:`pdf`, :meth:`log_prob`, :meth:`crps`)
    accept

    - a number for all rows, and return (n,);
    - an array (n,), one value for each row, and return (n,);
    - an array (n, m) of m values for each row, or (1, m) of the same m values for all rows, and
      return (n, m).

    Subclasses define the abstract methods, for values (n, m) or (1, m).

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.distributions import Distribution, NormalDistribution
    >>> rows: Distribution = NormalDistribution(np.array([0.0, 5.0]), np.array([1.0, 2.0]))
    >>> rows.interval(0.9).round(2)
    array([[-1.64,  1.64],
           [ 1.71,  8.29]])
    >>> rows.crps(1.0).round(3)
    array([0.602, 2.906])
    """

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def __getitem__(self, rows: Any) -> Self:
        """Return the distributions of some rows, by a slice, a mask or an array of numbers."""

    @abstractmethod
    def mean(self) -> FloatArray:
        """Return the means, (n,)."""

    @abstractmethod
    def var(self) -> FloatArray:
        """Return the variances, (n,)."""

    @abstractmethod
    def _cdf(self, y: FloatArray) -> FloatArray:
        """Probabilities of values up to y."""

    @abstractmethod
    def _pdf(self, y: FloatArray) -> FloatArray:
        """Densities at y."""

    @abstractmethod
    def _ppf(self, levels: FloatArray) -> FloatArray:
        """Quantiles."""

    @abstractmethod
    def _crps(self, y: FloatArray) -> FloatArray:
        """Scores of y."""

    def _log_prob(self, y: FloatArray) -> FloatArray:
        """Logarithms of densities at y."""
        density = self._pdf(y)
        return np.log(density, out=np.full_like(density, -np.inf), where=density > 0.0)

    def cdf(self, y: ArrayLike) -> FloatArray:
        """Return the probability P(Y <= y)."""
        return self._at(y, self._cdf)

    def pdf(self, y: ArrayLike) -> FloatArray:
        """Return the density at y."""
        return self._at(y, self._pdf)

    def log_prob(self, y: ArrayLike) -> FloatArray:
        """Return the log-density at y; its mean over rows is the log score."""
        return self._at(y, self._log_prob)

    def crps(self, y: ArrayLike) -> FloatArray:
        r"""Return the continuous ranked probability score of observed values, in their units.

        .. math:: \mathrm{CRPS}(F, y) = \int (F(z) - 1(y \le z))^2\, dz
                  = 2 \int_0^1 \rho_\tau(y - F^{-1}(\tau))\, d\tau

        Smaller is better. For a distribution at a single point it is the absolute error. It is
        computed in closed form.

        References
        ----------
        Gneiting, Raftery (2007), Strictly proper scoring rules, prediction, and estimation, (20).
        """
        return self._at(y, self._crps)

    def ppf(self, levels: ArrayLike) -> FloatArray:
        """Return quantiles, the inverse of :meth:`cdf`, at levels in [0, 1].

        Parameters
        ----------
        levels : float, or array-like of shape (m,) or (n, m)
            The same levels for all rows, or (n, m) separate levels for each row.

        Returns
        -------
        ndarray of shape (n,) or (n, m)
            One column for each level; (n,) for a single level.
        """
        array = np.asarray(levels, dtype=np.float64)
        shape = np.atleast_2d(array).shape
        if array.ndim > 2 or (array.ndim == 2 and shape[0] not in (1, len(self))):
            raise ValueError(
                f"levels must be a number or of shape (m,) or ({len(self)}, m), got shape "
                f"{array.shape}"
            )
        if not np.all((array >= 0.0) & (array <= 1.0)):
            raise ValueError("levels must be in [0, 1], got values outside of it")
        found = self._ppf(np.broadcast_to(array, shape))
        return found[:, 0] if array.ndim == 0 else found

    def std(self) -> FloatArray:
        """Return the standard deviations, (n,)."""
        return np.sqrt(self.var())

    def interval(self, coverage: float = 0.9) -> FloatArray:
        """Return the central interval of each distribution.

        Parameters
        ----------
        coverage : float, default=0.9
            Probability of the interval, in (0, 1).

        Returns
        -------
        ndarray of shape (n, 2)
            Lower and upper bounds.
        """
        share = SHARE(coverage, "coverage")
        return self.ppf([0.5 * (1.0 - share), 0.5 * (1.0 + share)])

    def sample(self, n_samples: int = 1, random_state: Any = None) -> FloatArray:
        """Draw independent samples from the distribution of each row, (n, n_samples).

        Parameters
        ----------
        n_samples : int
            Number of samples for each row.
        random_state : int, RandomState or None
            Seed. None gives different samples in each call, as in scikit-learn.
        """
        size = len(self), int(COUNT(n_samples, "n_samples"))
        return self._ppf(check_random_state(random_state).uniform(size=size))

    def _at(self, y: ArrayLike, values: Any) -> FloatArray:
        """Values of a method, of which arrays are given with two dimensions."""
        array = np.asarray(y, dtype=np.float64)
        n = len(self)
        wrong = array.ndim > 2 or (array.ndim == 1 and len(array) != n)
        if wrong or (array.ndim == 2 and len(array) not in (1, n)):
            raise ValueError(
                f"y must be a number or of shape ({n},), (1, m) or ({n}, m), one row for each of "
                f"the {n} distributions, got shape {array.shape}"
            )
        if np.isnan(array).any():
            raise ValueError("y must be numbers, got NaN")
        if array.ndim == 2:
            return np.asarray(values(array))
        return np.asarray(values(array.reshape(-1, 1)))[:, 0]
