"""Pivoted Cholesky for operator-valued kernels, with a matrix of features for each row."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel._validation import Having, declared
from fenchel.design import Design, Operator
from fenchel.features.factorizations import BLOCK, blocked, greedy
from fenchel.features.gram import PROBES, Gram
from fenchel.features.middle import Middle
from fenchel.features.pivoted_cholesky import PivotedCholesky
from fenchel.kernels import OperatorKernel


class OperatorCholesky(PivotedCholesky):
    r"""Greedy partial Cholesky factorization of the (n p, n p) matrix of an operator kernel.

    .. math:: \Phi(x) \in R^{p \times r}, \qquad K(x, x') \approx \Phi(x)\, \Phi(x')^\top,
              \qquad h(x) = \Phi(x)\, w

    The pivots are pairs of a row and an output. Each step chooses the pair with the largest
    residual diagonal, until no residual exceeds ``tol`` times the largest diagonal entry. Features
    are (n, p, r) arrays; no (n p, n p) array is formed.

    Parameters
    ----------
    kernel : OperatorKernel
        See :class:`fenchel.kernels.OperatorKernel`.
    tol, rank, random_state
        As in :class:`PivotedCholesky`, with n p in place of n.

    Attributes
    ----------
    landmarks_ : ndarray of shape (rank_, n_features)
        The rows of the pivots.
    outputs_ : ndarray of shape (rank_,)
        The outputs of the pivots.
    pivots_ : ndarray of shape (rank_,)
        Row index times p plus output index.
    factor_ : ndarray of shape (rank_, rank_)
        Lower triangular factor of the kernel between the pivots.
    rank_, kernel_, kernel_error_, n_features_in_
        See :class:`FeatureMap`.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.features import OperatorCholesky
    >>> from fenchel.kernels import Gaussian, Transformable
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> kernel = Transformable(Gaussian(1.0), [[[1.0]], [[-1.0]]])
    >>> features = OperatorCholesky(kernel).fit_transform(X)
    >>> features.shape[:2]
    (50, 2)
    >>> blocks = np.einsum("ijr,klr->ikjl", features, features)
    >>> np.allclose(blocks, kernel.blocks(X), atol=1e-9)
    True
    """

    constraints = declared(kernel=Having("an OperatorKernel", ("columns", "resolved")))
    kernel_: Any

    def _resolved_kernel(self, X: FloatArray) -> Any:
        return self.kernel.resolved(X, random_state=self.random_state)

    def _fit(self, X: FloatArray) -> FloatArray:
        p = self.kernel_.n_outputs
        cap = self._cap(len(X) * p)
        gram = self._gram(X)
        level = self._level(gram)
        features, pivots, left = greedy(gram, min(cap, BLOCK), level)
        if left.max() > level and len(pivots) < cap:
            features, pivots, left = blocked(gram, cap, level, (features, pivots, left))
        if left.max() <= level:
            gram.check_rest(features)
        self.pivots_ = pivots
        self.factor_ = features[pivots]
        self.landmarks_, self.outputs_ = X[pivots // p], pivots % p
        self._set_kernel_error(gram.diagonal, left)
        return features.reshape(len(X), p, len(pivots))

    def _gram(self, X: FloatArray) -> Gram:
        return _OperatorGram(self.kernel_, X)

    def _add_landmarks(self, X: FloatArray, pivots: IntArray) -> None:
        points, outputs = np.divmod(pivots, self.kernel_.n_outputs)
        self.landmarks_ = np.concatenate([self.landmarks_, X[points]])
        self.outputs_ = np.concatenate([self.outputs_, outputs])

    def coefficients(self, weights: FloatArray) -> FloatArray:
        r"""Return coefficients a (rank_,): :math:`\Phi(x) w = \sum_k K(x, z_k)_{:l_k} a_k`.

        w (rank_,) are weights of the features, z the ``landmarks_`` and l the ``outputs_``.
        """
        return super().coefficients(weights)

    def design(self, features: FloatArray, coupling: FloatArray) -> Design:
        """Return the design of these features, which include the coupling of outputs."""
        return Operator(features)

    def _values_per_row(self) -> int:
        return int(self.kernel_.n_outputs) * self.rank_

    def _map(self, X: FloatArray) -> FloatArray:
        values = self.kernel_.columns(X, self.landmarks_, self.outputs_)
        flat = values.reshape(values.shape[0] * values.shape[1], self.rank_)
        return self._solved(flat).reshape(values.shape)


class _PairMiddle(Middle):
    """The middle of rows, each of which is there with every output."""

    def __init__(self, X: FloatArray, n_outputs: int) -> None:
        super().__init__(X)
        self._n_outputs = n_outputs

    @cached_property
    def distance(self) -> FloatArray:
        """Squared distance of each row, for each output, (n p,)."""
        return np.repeat(Middle(self.X).distance, self._n_outputs)

    def told(self, some: IntArray) -> FloatArray:
        """What rows hold, and the output, (m, d + 1)."""
        points, outputs = np.divmod(some, self._n_outputs)
        return np.column_stack([self.X[points], outputs])


class _OperatorGram(Gram):
    """The matrix of an operator kernel: entry i p + l stands for row i and output l."""

    def __init__(self, kernel: OperatorKernel, X: FloatArray) -> None:
        self.kernel, self.X, self.given = kernel, X, False
        self.diagonal = np.array(kernel.diag(X), dtype=np.float64).ravel()
        self.largest = float(self.diagonal.max())
        self.check(self.diagonal)

    @cached_property
    def middle(self) -> Middle:
        """That of rows, whose outputs are told apart by their numbers."""
        return _PairMiddle(self.X, self.kernel.n_outputs)

    def block(self, rows: Any, pivots: Any) -> FloatArray:
        """K between flat indices, writeable; ``slice(None)`` is all of them."""
        points, outputs = np.divmod(pivots, self.kernel.n_outputs)
        if isinstance(rows, slice):
            values = self.kernel.columns(self.X, self.X[points], outputs)
            return values.reshape(-1, len(pivots))
        own_points, own = np.divmod(rows, self.kernel.n_outputs)
        unique, inverse = np.unique(own_points, return_inverse=True)
        return self.kernel.columns(self.X[unique], self.X[points], outputs)[inverse, own]

    def probes(self, n: int) -> IntArray:
        """About 500 flat indices, all outputs of some rows: a fixed step might miss some."""
        p = self.kernel.n_outputs
        points = np.arange(0, n // p, -(-n // max(p, PROBES)))
        return np.add.outer(p * points, np.arange(p)).ravel()

    def refusal(self, lowest: float) -> ValueError:
        """Return the error for what is not positive semi-definite."""
        return ValueError(
            "the operator-valued kernel must be symmetric, K(x, z) = K(z, x)ᵀ, and positive "
            f"semi-definite on the rows of X, and is not: a residual of {lowest:.3g} was found"
        )
