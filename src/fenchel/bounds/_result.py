"""Result type of all bounds: value, terms, assumptions and source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Real

from fenchel._validation import Number, shown

BOOK = "Mohri, Rostamizadeh, Talwalkar, Foundations of Machine Learning"
JOINT = "Sangnier, Fercoq, d'Alché-Buc (2016), Joint quantile regression in vector-valued RKHSs"
SPARSE = (
    "Sangnier, Fercoq, d'Alché-Buc (2017), Data sparse nonparametric regression with "
    "ε-insensitive losses"
)
POSITIVE = "Marteau-Ferey, Bach, Rudi (2020), Non-parametric models for non-negative functions"
IID = "the n rows are drawn independently from the distribution that the risk is of"
AHEAD = "the class of functions was fixed without looking at the sample"


@dataclass(frozen=True)
class Bound:
    r"""A bound that holds with probability at least 1 - delta over the sample.

    .. math:: \mathrm{value} = \sum_k \mathrm{terms}_k

    Attributes
    ----------
    value : float
        Upper bound on ``risk``, or lower bound if ``lower`` is true.
    terms : dict of str to float
        Named terms; their sum is ``value``.
    assumptions : tuple of str
        Conditions under which the bound holds. They are only checked as far as the sample can
        contradict them.
    constants : dict of str to float
        Numbers from which the terms are computed.
    source : str
        The theorem, and differences from it if any.
    risk : str
        The bounded quantity.
    trivial : float
        Trivial bound on ``risk`` under the same assumptions, for any sample.
    caveats : tuple of str
        Dependences on the sample that the theorem does not cover. Empty if the bound is strictly
        valid under its assumptions.
    lower : bool
        Whether ``value`` is a lower bound.

    Examples
    --------
    >>> from fenchel.bounds import finite_class_bound
    >>> result = finite_class_bound(0.1, 1000, n_hypotheses=10, loss_bound=1.0)
    >>> round(result.value, 4), result.vacuous
    (0.1515, False)
    """

    terms: Mapping[str, float]
    _: KW_ONLY
    assumptions: tuple[str, ...]
    constants: Mapping[str, float]
    source: str
    risk: str
    trivial: float
    caveats: tuple[str, ...] = ()
    lower: bool = False

    @property
    def value(self) -> float:
        """Sum of the terms."""
        return sum(self.terms.values())

    @property
    def vacuous(self) -> bool:
        """Whether the bound is no better than the trivial one."""
        return self.value <= self.trivial if self.lower else self.value >= self.trivial

    def __str__(self) -> str:
        """Text with value, terms, assumptions and source."""
        sign = ">=" if self.lower else "<="
        note = f"  (vacuous: {self.trivial:.6g} always holds)" if self.vacuous else ""
        lines = [f"{self.risk} {sign} {self.value:.6g}{note}"]
        lines += [f"  {term:>12.6g}  {name}" for name, term in self.terms.items()]
        listed = ", ".join(f"{name} = {number:.6g}" for name, number in self.constants.items())
        lines.append(f"with {listed}")
        lines += [f"if {sentence}" for sentence in self.assumptions]
        lines += [f"not covered: {sentence}" for sentence in self.caveats]
        lines.append(f"source: {self.source}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """One line with value, terms and source."""
        parts = ", ".join(f"{name} {term:.4g}" for name, term in self.terms.items())
        note = ", vacuous" if self.vacuous else ""
        return f"Bound({self.value:.4g} = {parts}{note}; {self.source})"


def check_real(name: str, value: object, *, open_low: bool = False) -> float:
    """Return a finite number >= 0, or > 0, as a float, or say what is allowed."""
    return Number(0.0, open_low=open_low)(value, name)


def check_count(name: str, value: object, *, low: int = 1, any_size: bool = False) -> int:
    """Return an integer in range, or say what is allowed; of ``any_size`` beyond floats too."""
    if any_size and isinstance(value, int) and value > 2**53:
        return value
    return int(Number(low, integer=True)(value, name))


def check_delta(delta: object) -> float:
    """Return a failure probability, or say what is allowed."""
    if isinstance(delta, bool) or not isinstance(delta, Real) or not 0.0 < float(delta) <= 1.0:
        raise ValueError(f"delta must be a number in (0, 1], got {shown(delta)}")
    return float(delta)
