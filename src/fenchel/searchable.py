"""Interface between estimators and searches."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from fenchel._typing import FloatArray
from fenchel._validation import shown
from fenchel.kernels import OperatorKernel, as_kernel

_STRONGEST, _WEAKEST = 10.0, 1e-6  # in units of mean loss / spread² * mean diagonal


class Searchable:
    """Interface of estimators that :class:`fenchel.model_selection.PathSearchCV` uses.

    An estimator also needs ``check_parameters``, ``prepare`` and ``fit_prepared``, see
    :class:`fenchel.estimator.KernelEstimator`.

    Examples
    --------
    >>> from fenchel import KernelRidge
    >>> KernelRidge().default_grid()
    {'alpha': 20}
    >>> KernelRidge(kernel="rbf").with_parameters(length_scale=2.0).kernel
    Gaussian(length_scale=2.0)
    """

    feature_parameters: ClassVar[tuple[str, ...]] = ("kernel", "features", "rank", "random_state")
    """Parameters that ``prepare`` uses; it is called again for each of their settings."""
    path_parameters: ClassVar[dict[str, str]] = {"alpha": "falling"}
    """Parameters along which fits start from one another, with the order of their values.

    If there is a second one, ``fit_prepared`` must return an array, which is extrapolated.
    """
    candidate_tol: ClassVar[float] = 0.0
    """Tolerance that suffices to compare candidates, if ``tol`` has its default."""
    default_selection: ClassVar[str] = "min"
    """Meaning of ``selection="auto"``."""
    kernel: Any

    def default_grid(self) -> dict[str, Any]:
        """Return the default candidates."""
        raise NotImplementedError

    def path_grid(self, prepared: Any, name: str, n: int) -> FloatArray:
        """Return n values of a path parameter, in its order and in the units of the problem."""
        raise NotImplementedError

    def elsewhere(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return rows that are not in memory and can be split into folds, or None."""
        return None

    def search_score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the default score of a search, which is maximized: the ``score``."""
        score: Any = getattr(self, "score")  # noqa: B009  (of scikit-learn's mixins)
        return float(score(X, y, sample_weight=sample_weight))

    @property
    def leave_one_out_by(self) -> str | None:
        """How rows are left out of fits on prepared rows: "closed_form", "refits" or None."""
        return None

    def leave_one_out_scores(self, prepared: Any, alphas: FloatArray) -> FloatArray:
        """Return minus the leave-one-out error and its standard error at each alpha, (2, m)."""
        raise ValueError(
            "scoring='loo' needs an estimator with leave-one-out errors in closed form, such as "
            f"KernelRidge, got {type(self).__name__}"
        )

    def with_parameters(self, **parameters: Any) -> Self:
        """Return an unfitted copy that learns nothing; ``length_scale`` is that of the kernel.

        Likewise, ``gap_length_scale`` is that of ``gap_kernel``, and so on.
        """
        copied: Any = clone(self)
        known = copied.get_params(deep=False)
        for name in [name for name in parameters if name.endswith("length_scale")]:
            kernel_name = f"{name.removesuffix('length_scale')}kernel"
            if kernel_name in known:
                given = parameters.get(kernel_name, known[kernel_name])
                kernel = given if isinstance(given, OperatorKernel) else as_kernel(given)
                parameters[kernel_name] = _scaled(kernel, parameters.pop(name))
        fixed = {"learn": False} if "learn" in known else {}
        return copied.set_params(**fixed | parameters)

    def chosen(self, **parameters: Any) -> Self:
        """Return an unfitted copy with the chosen parameters of a search, for all rows."""
        return self.with_parameters(**parameters)


def _scaled(kernel: Any, scale: Any) -> Any:
    """A copy of a kernel with another length scale, its own or that of the kernel within."""
    if hasattr(kernel, "length_scale"):
        return clone(kernel).set_params(length_scale=scale)
    if hasattr(kernel, "kernel"):
        return clone(kernel).set_params(kernel=_scaled(kernel.kernel, scale))
    raise ValueError(f"length_scale is for kernels that have one, got {shown(kernel)}")


def strengths(n: int, least: float = 1.0) -> FloatArray:
    """Strengths on a geometric grid, largest first, in units in which all scales are one.

    They range from nearly constant to nearly interpolating models, in all directions whose
    squares are at least ``least``.

    Examples
    --------
    >>> from fenchel.searchable import strengths
    >>> strengths(3)
    array([1.00000000e+01, 3.16227766e-03, 1.00000000e-06])
    """
    return np.geomspace(_STRONGEST, _WEAKEST * least, n)


__all__ = ["Searchable", "strengths"]

__dir__ = __all__.copy
