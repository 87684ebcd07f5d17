"""Base class of kernels that are evaluated on transformed rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from fenchel._typing import FloatArray
from fenchel._validation import WITH_DATA, That, declared
from fenchel.kernels.base import ScalarKernel, two_dimensional
from fenchel.kernels.parameters import differentiated, parameter_gradient

KERNEL = That(
    "a kernel object such as Gaussian('median')", lambda kernel: isinstance(kernel, Kernel)
)


class OfSeen(ScalarKernel):
    """A given kernel, evaluated on the rows that :meth:`seen` returns."""

    constraints = declared(kernel=KERNEL, columns=WITH_DATA)

    kernel: Kernel

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """Hyperparameters of the given kernel."""
        return [h._replace(name=f"kernel__{h.name}") for h in self.kernel.hyperparameters]

    @property
    def theta(self) -> FloatArray:
        """Logarithms of the open parameters of the given kernel."""
        return np.asarray(self.kernel.theta)

    @theta.setter
    def theta(self, theta: FloatArray) -> None:
        self.kernel.theta = theta

    @property
    def bounds(self) -> FloatArray:
        """Logarithms of the bounds of the open parameters."""
        return np.asarray(self.kernel.bounds)

    def _evaluate(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        seen = self.seen(X)
        return np.asarray(self.kernel(seen) if Y is X else self.kernel(seen, self.seen(Y)))

    def reduced(self, X: FloatArray) -> tuple[FloatArray, ScalarKernel]:
        """The transformed rows and the given kernel, if that is a kernel of this library."""
        kernel = self.kernel
        return kernel.reduced(self.seen(X)) if isinstance(kernel, ScalarKernel) else (X, self)

    def diag(self, X: npt.ArrayLike) -> FloatArray:
        """Return k(x, x) for each row, (n,)."""
        return np.asarray(self.kernel.diag(self.seen(two_dimensional(X))))

    def is_stationary(self) -> bool:
        """Whether the given kernel is stationary."""
        return bool(self.kernel.is_stationary())

    def parameter_gradient(
        self, X: FloatArray, Z: FloatArray, weights: FloatArray
    ) -> FloatArray | None:
        """Parameter gradient of the given kernel."""
        seen = self.seen(X)
        return parameter_gradient(self.kernel, seen, seen if Z is X else self.seen(Z), weights)

    def differentiated(
        self, X: FloatArray
    ) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        """Values and parameter gradient of the given kernel."""
        return differentiated(self.kernel, self.seen(X))
