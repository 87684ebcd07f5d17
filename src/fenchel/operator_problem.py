"""A regularized regression problem with an operator-valued kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.blocks import Block
from fenchel.problem import Problem


@dataclass(frozen=True, eq=False)
class OperatorProblem(Problem):
    r"""A problem whose features are a matrix :math:`\Phi_i` (p, r) for each row.

    .. math:: h(x_i) = \Phi_i w, \qquad \|h\|^2 = \|w\|^2, \qquad
              w = \sum_i c_i \Phi_i^\top \beta_i

    with :math:`K(x_i, x_k) = \Phi_i \Phi_k^\top`: ``features`` is (n, p, r), weights are
    vectors (r,), and ``coupling``, which the features contain, is the identity (p, p). All
    else, the certificate included, is as in :class:`fenchel.problem.Problem`.
    """

    @property
    def gram(self) -> None:
        """There is none: the matrix of the operator is not one of scalar kernel values."""
        return

    def gram_among(self, rows: IntArray, vectors: FloatArray) -> FloatArray:
        """Inner products of the functions K(·, x_i) v, a row i and a vector v of each."""
        functions = np.einsum("mp,mpr->mr", vectors, self.features[rows])
        return functions @ functions.T

    def kernel_among(self, rows: IntArray) -> FloatArray:
        """There is no scalar kernel."""
        raise NotImplementedError("an operator-valued kernel has no scalar part: use gram_among")

    def no_weights(self) -> FloatArray:
        """Weights of the function zero."""
        return np.zeros(self.features.shape[2])

    def directions(self, weights: FloatArray) -> FloatArray:
        """What features are multiplied with to predict: the weights themselves, (r,)."""
        return weights

    def pulled(self, block: Block, push: FloatArray) -> FloatArray:
        """Σ Φ_iᵀ push_i over the rows of a block, (r,)."""
        return push.ravel() @ block.features.reshape(push.size, -1)

    def link(self, dual: FloatArray) -> FloatArray:
        """Weights w = Σ c_i Φ_iᵀ β_i of a dual point, (r,)."""
        return self.pull(dual)
