"""The interface of kernels: that of scikit-learn's Gaussian-process kernels, with additions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.gaussian_process.kernels import Kernel

from fenchel._typing import FloatArray
from fenchel._validation import CheckedParameters
from fenchel.kernels.measures import Box, Normal
from fenchel.kernels.sparse import SparsePoints

_SHOWN = 12  # numbers of an array, from which on its middle is left out


class ScalarKernel(CheckedParameters, Kernel):
    """Base class of scalar kernels, whose parameters no marginal likelihood optimizes.

    Subclasses define ``_evaluate(X, Y)`` for two-dimensional float arrays. They may also define
    ``product_integrals``, ``gradient`` and ``factor``, which densities and other non-negative
    models use, and ``frequencies``, which random Fourier features use. The operators ``+``, ``*``
    and ``**`` are scikit-learn's: they take numbers and kernels of both libraries.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import ScalarKernel
    >>> class Tent(ScalarKernel):
    ...     def _evaluate(self, X, Y):
    ...         return np.maximum(0.0, 1.0 - np.abs(X - Y.T))
    >>> (2 * Tent())(np.array([[0.0], [0.5]]))
    array([[2., 1.],
           [1., 2.]])
    """

    _stationary = True

    of_whole_rows: ClassVar[bool] = False
    """Whether values are known from products or distances of rows, and rows may be sparse."""

    tail: float = 19.5
    """Length scales beyond which a value is nothing beside the largest: exp(-19.5) = 3e-9."""

    def __call__(self, X: npt.ArrayLike, Y: Any = None, eval_gradient: bool = False) -> FloatArray:
        """Return k(X, Y), (n_X, n_Y); k(X, X) if Y is None."""
        if eval_gradient:
            raise ValueError(
                f"eval_gradient must be False: {type(self).__name__} gives derivatives in its "
                "parameters by parameter_gradient"
            )
        X = two_dimensional(X)
        return self._evaluate(X, X if Y is None else two_dimensional(Y))

    def _evaluate(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        raise NotImplementedError(f"{type(self).__name__} must define _evaluate")

    def diag(self, X: npt.ArrayLike) -> FloatArray:
        """Return k(x, x) for each row, (n,): 1 for stationary kernels."""
        return np.ones(len(two_dimensional(X)))

    def is_stationary(self) -> bool:
        """Whether k(x, x') depends on x - x' only, as far as is known."""
        return self._stationary

    def measure(self, X: FloatArray, sample_weight: FloatArray | None) -> None:
        """Set the parameters that are estimated from X; this default sets none."""

    def seen(self, X: FloatArray) -> FloatArray:
        """Rows from which length scales are estimated; this default returns X."""
        return X

    def reduced(self, X: FloatArray) -> tuple[FloatArray, ScalarKernel]:
        """Return rows u(x) and a kernel k' with k(x, z) = k'(u(x), u(z)).

        Work that is needed once per row, and not per pair, is done here. This saves time when
        kernel values are computed in many parts. This default returns X and the kernel itself.
        """
        return X, self

    def fill(self, X: FloatArray, Y: FloatArray, out: FloatArray) -> None:
        """Write k(X, Y) into ``out``, a C-contiguous array, in the precision of ``out``.

        A class that overrides ``_evaluate`` does not inherit ``fill`` and :meth:`reduced` from
        its parent class: it gets the defaults of this class unless it defines them itself.
        """
        out[...] = self(X, Y)

    def __init_subclass__(cls, **options: Any) -> None:
        """Reset ``fill`` and ``reduced`` to the defaults in classes that change kernel values."""
        super().__init_subclass__(**options)
        if {"__call__", "_evaluate"} & vars(cls).keys():
            for name in {"fill", "reduced"} - vars(cls).keys():
                setattr(cls, name, getattr(ScalarKernel, name))

    def product_integrals(self, Z: FloatArray, measure: Box | Normal) -> FloatArray | None:
        r"""Integrals of products of two kernel values, or None if no formula is known.

        .. math:: M_{jl} = \int k(x, z_j)\, k(x, z_l)\, d\mu(x)

        Returns an (m, m) array for Z of shape (m, n_features). Raises ValueError if the
        integrals are infinite.
        """
        return None

    def product_distance(self, measure: Box | Normal) -> float:
        r"""Upper bound on the error of :meth:`product_integrals` for this measure.

        .. math:: \sup_z \|k(\cdot, z) - \tilde k(\cdot, z)\|_{L^2(\mu)}

        where :math:`\tilde k` is the kernel whose products are integrated. 0 for closed forms.
        """
        return 0.0

    def log_values(self, X: FloatArray, Z: FloatArray) -> FloatArray | None:
        """Logarithms of kernel values, (n, m), which do not underflow; None if not available."""
        return None

    def gradient(self, X: FloatArray, Z: FloatArray, weights: FloatArray) -> FloatArray | None:
        r"""Gradients of linear combinations of kernel values, or None if not available.

        .. math:: G_i = \sum_j w_{ij} \nabla_x k(x, z_j) \big|_{x = x_i}

        Returns an (n, n_features) array for X of shape (n, n_features), Z (m, n_features) and
        weights (n, m). The (n, m, n_features) array of all gradients is not formed.
        """
        return None

    def parameter_gradient(
        self, X: FloatArray, Z: FloatArray, weights: FloatArray
    ) -> FloatArray | None:
        r"""Derivatives of a weighted sum of kernel values, or None if not available.

        .. math:: g_m = \sum_{ij} w_{ij} \frac{\partial k(x_i, z_j)}{\partial \theta_m}

        with respect to ``theta``, the logarithms of the hyperparameters that are not fixed, for
        X (n, d), Z (m, d) and weights (n, m). The (n, m, n_dims) array of all derivatives is not
        formed.
        """
        return np.empty(0) if self.n_dims == 0 else None

    def differentiated(
        self, X: FloatArray
    ) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]] | None:
        """Return k(X, X), and :meth:`parameter_gradient` on X as a function of the weights.

        Returns None if computing the two together saves no time.
        """
        return None

    def factor(self, columns: Sequence[int]) -> ScalarKernel | None:
        r"""Return the kernel of some columns if k is a product over columns, or None.

        .. math:: k(x, x') = \prod_c k_c(x_c, x'_c)

        For columns C, returns :math:`\prod_{c \in C} k_c`, a kernel of rows that contain only
        these columns, in this order.
        """
        return None

    def mixture(self, dimension: int) -> tuple[FloatArray, FloatArray] | None:
        r"""Approximate k by a sum of Gaussian kernels; return precisions p and weights w, or None.

        .. math:: k(x, x') \approx \sum_a w_a \exp(-p_a r^2)

        where r is the distance in units of ``length_scale``. Marginals and samples computed
        from this approximation are correct to four digits.
        """
        return None

    def frequencies(
        self, n_features: int, size: int, random: np.random.RandomState
    ) -> FloatArray | None:
        r"""Sample the spectral density of a shift-invariant kernel, or return None if unknown.

        .. math:: k(x, x') = k(x, x)\, \mathrm{E} \cos(\omega^\top (x - x'))

        Returns an (n_features, size) array of frequencies ω.
        """
        return None

    __hash__ = None  # type: ignore[assignment]  # parameters may change

    def __eq__(self, other: object) -> bool:
        """Whether the two kernels have the same class and parameters."""
        if type(self) is not type(other):
            return False
        mine, theirs = self.get_params(), other.get_params()
        return all(_same(value, theirs[name]) for name, value in mine.items())

    def __repr__(self) -> str:
        """Show the constructor call."""
        shown = {k: v for k, v in self.get_params().items() if v is not None}
        arguments = ", ".join(f"{k}={_short(v)}" for k, v in shown.items())
        return f"{type(self).__name__}({arguments})"


def two_dimensional(X: Any) -> FloatArray:
    """Return X as a float64 array (n_samples, n_features); sparse rows are returned unchanged."""
    if isinstance(X, SparsePoints):
        return cast(FloatArray, X)
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"a kernel takes two-dimensional arrays, got {X.ndim} dimension(s)")
    return X


def _same(first: Any, second: Any) -> bool:
    """Equality of parameters; an array equals only an array of the same length."""
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return type(first) is type(second) and np.array_equal(first, second)
    return bool(first == second)


def _short(value: Any) -> str:
    if callable(value) and hasattr(value, "__qualname__"):
        return str(value.__qualname__)
    if not isinstance(value, np.ndarray):
        return repr(value.item() if isinstance(value, np.generic) else value)
    if value.ndim > 1 and value.size > _SHOWN:
        return "..."
    line = np.array2string(value, precision=3, threshold=_SHOWN)
    return " ".join(line.split()).replace("[ ", "[").replace(" ]", "]")
