"""What a fit promises, how it ended, and its progress: one definition for all problems."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from fenchel._typing import FloatArray


@dataclass(frozen=True)
class Certificate:
    """A rigorous bound on how far a fit is from the optimum.

    Objectives are those of the formula in the docstring of the estimator.

    Parameters
    ----------
    primal : float
        Objective of the fitted model, with its own offset: ``certified_offset_`` where offsets
        are moved to other rows after the fit.
    dual : float
        Objective of a feasible dual point: no model can go below it.
    unit : float
        What ``relative_gap`` is relative to: the mean loss of the best constant model, that is
        its objective. For log-likelihoods, which have no natural zero, it is 1 (a nat per row).
    feasibility : float, default=0.0
        How far the dual point or the model is from its constraints, relative to their size:
        rounding only.

    Attributes
    ----------
    gap : float
        ``primal - dual``. The fitted model's objective is at most this far from optimal.
    relative_gap : float
        ``gap / unit``. Where the best constant has no loss at all (``unit`` is 0) it is 0 for a
        model that has none either, and infinite for any other. NaN where an objective or the
        unit is no number, or the unit is infinite.

    Examples
    --------
    >>> from fenchel.certificate import Certificate
    >>> certificate = Certificate(primal=1.5, dual=1.0, unit=2.0)
    >>> certificate.gap, certificate.relative_gap
    (0.5, 0.25)
    """

    primal: float
    dual: float
    unit: float
    feasibility: float = 0.0

    @property
    def gap(self) -> float:
        """``primal - dual``."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """``gap / unit``."""
        if math.isnan(self.gap) or not math.isfinite(self.unit):
            return math.nan
        if self.unit > 0.0:
            return self.gap / self.unit
        return 0.0 if self.gap <= 0.0 else float("inf")

    @classmethod
    def of_sum(cls, parts: Iterable[Certificate]) -> Certificate:
        """Certificate of independent problems together."""
        known = list(parts)
        return cls(
            sum(c.primal for c in known),
            sum(c.dual for c in known),
            sum(c.unit for c in known),
            max(c.feasibility for c in known),
        )


@dataclass(frozen=True)
class Certified:
    """A feasible dual point, a model, and their certificate.

    Attributes
    ----------
    dual : ndarray of shape (n, p)
        The dual point.
    weights : ndarray
        Weights of the model's function.
    offset : ndarray of shape (p,)
        Its offset.
    certificate : Certificate
        Objectives of the two.
    source : ndarray of shape (n, p) or None
        The point whose function the model is: ``dual``, or another one; None if not known.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import Plain
    >>> from fenchel.losses import Absolute
    >>> from fenchel.problem import Problem
    >>> design = Plain(np.array([[-1.0], [0.0], [1.0]]), np.eye(1))
    >>> targets = np.array([[0.0], [1.0], [4.0]])
    >>> problem = Problem(Absolute(), design, targets, np.ones(3), alpha=0.1)
    >>> point = problem.certify(np.array([[-1.0], [0.0], [1.0]]))
    >>> bool(point.certificate.gap >= 0.0)
    True
    """

    dual: FloatArray
    weights: FloatArray
    offset: FloatArray
    certificate: Certificate
    source: FloatArray | None = None


@dataclass(frozen=True)
class Status:
    """How a solver ended, as a sentence with its remedy.

    Examples
    --------
    >>> from fenchel import KernelRidge
    >>> from fenchel.datasets import load_engel
    >>> X, y = load_engel(return_X_y=True)
    >>> status = KernelRidge(learn=False).fit(X, y).status_
    >>> status.converged
    True
    """

    converged: bool
    message: str


class Progress(NamedTuple):
    """One line of a solver's history, or one of learning: its criterion is the primal value then.

    See :attr:`is_learning`.

    Examples
    --------
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.datasets import load_engel
    >>> X, y = load_engel(return_X_y=True)
    >>> lines = []
    >>> model = QuantileRegressor(0.9, learn=False, callback=lines.append).fit(X, y)
    >>> lines[-1].relative_gap <= model.tol, lines[-1].is_learning
    (True, False)
    """

    iteration: int
    seconds: float
    primal: float
    dual: float
    relative_gap: float

    @property
    def is_learning(self) -> bool:
        """Whether it is an evaluation of held-out loss, which has no dual value."""
        return math.isnan(self.dual)


Callback = Callable[[Progress], object]
"""Called for each certificate; a truthy return value stops the solver, and a string says why.

One with a method ``seconds_left`` is asked by solvers that take a limit on their time. One with a
method ``reads`` is told of tables in files how many rows were read, and of how many. One with a
true attribute ``asked_again`` that ends learning is asked again whether the fit is to end too.
"""

__all__ = ["Callback", "Certificate", "Certified", "Progress", "Status"]

__dir__ = __all__.copy
