"""Random Fourier features of shift-invariant kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel._parameters import parameters
from fenchel._typing import FloatArray
from fenchel._validation import COUNT, declared, random_of
from fenchel.features.base import FeatureMap, in_chunks
from fenchel.kernels import as_scalar_kernel

_PROBES = 500


@parameters
class RandomFourier(FeatureMap):
    r"""Random Fourier features, in pairs of a cosine and a sine.

    .. math:: \varphi(x) = \sqrt{2 k(x, x) / r}\,
              (\cos \omega_m^\top x, \sin \omega_m^\top x)_{m \le r/2}

    with ω drawn from the spectral density of the kernel: a normal density for the Gaussian kernel,
    Cauchy for the Laplacian, Student's t with 2ν degrees of freedom for the Matérn kernel.

    Parameters
    ----------
    kernel : None, str or kernel
        Gaussian, Laplacian or Matérn kernel, scikit-learn's RBF or Matern, or another kernel
        that defines ``frequencies``.
    rank : int
        Number of features; rounded up to an even number.
    random_state : int, RandomState or None
        Seed of the frequencies; None is the fixed seed 0.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features, rank_ / 2)
        The frequencies ω.
    kernel_error_ : float
        Relative Frobenius error of the Gram matrix, on at most 500 training rows, drawn with a
        seed. The trace is no error measure here, because the map is not a lower bound of the
        kernel.
    rank_, kernel_, n_features_in_
        See :class:`FeatureMap`.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.features import RandomFourier
    >>> X = np.linspace(0, 1, 100)[:, None]
    >>> RandomFourier("gaussian", rank=400).fit(X).kernel_error_ < 0.1
    True

    References
    ----------
    Rahimi, Recht (2007), Random features for large-scale kernel machines.
    """

    needs_frequencies = True
    constraints = declared(rank=COUNT)
    _height = 1.0
    """k(x, x), the same for all x."""

    kernel: Any = None
    rank: int = 200
    random_state: Any = None

    def _fit(self, X: FloatArray) -> FloatArray:
        random = random_of(self.random_state)
        pairs = (int(self.rank) + 1) // 2
        kernel = as_scalar_kernel(self.kernel_)
        drawn = kernel.frequencies(X.shape[1], pairs, random)
        if drawn is None:
            raise ValueError(
                "features='fourier' takes a Gaussian, Laplacian or Matern kernel, got "
                f"{self.kernel_!r}; features='cholesky' takes any"
            )
        self.frequencies_, self._height = drawn, float(kernel.diag(X[:1])[0])
        self.rank_ = 2 * pairs
        features = in_chunks(self._map, X, self.rank_, threads=True)
        rows = random.choice(len(X), min(_PROBES, len(X)), replace=False)
        gram = self.kernel_(X[rows])
        error = np.linalg.norm(gram - features[rows] @ features[rows].T)
        self.kernel_error_ = float(error / np.linalg.norm(gram))
        return features

    def _map(self, X: FloatArray) -> FloatArray:
        angle = X @ self.frequencies_
        waves = np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
        waves *= np.sqrt(2.0 * self._height / self.rank_)
        return waves
