"""Bounds of non-negative models."""

from __future__ import annotations

from fenchel.bounds._result import AHEAD, IID, Bound, check_count, check_real
from fenchel.bounds.complexity import positive_model_complexity

POSITIVE = "Marteau-Ferey, Bach, Rudi (2020), Non-parametric models for non-negative functions"


def positive_excess_bound(n: int, *, norm: float, radius: float, lipschitz: float) -> Bound:
    r"""Bound the mean excess risk of a non-negative model fitted by constrained minimization.

    .. math:: E\, R(\hat f) - \inf_{f \in F} R(f) \le 2 G R_n(F) \le \frac{2 G L c^2}{\sqrt n},
              \qquad F = \{x \mapsto \varphi(x)^\top A \varphi(x): A \succeq 0, \|A\|_F \le L\}

    for the minimizer of the mean loss over F. The expectation is over samples, so no
    probability of failure comes in. The published bound is twice as large, by the bound on
    R_n: see :func:`positive_model_complexity`.

    Parameters
    ----------
    n : int
        Size of the sample.
    norm : float
        L; any norm that is at least the Frobenius norm, such as the trace, will do.
    radius : float
        c, with k(x, x) <= c² everywhere.
    lipschitz : float
        G, a bound on the slopes of the loss in the prediction.

    Returns
    -------
    Bound
        With its terms, assumptions and caveats.

    References
    ----------
    Marteau-Ferey, Bach, Rudi (2020), (12), with half the constant.

    Examples
    --------
    >>> from fenchel.bounds import positive_excess_bound
    >>> positive_excess_bound(10_000, norm=2.0, radius=1.0, lipschitz=1.0).value
    0.04
    """
    n = check_count("n", n)
    norm, radius = check_real("norm", norm), check_real("radius", radius)
    slope = check_real("lipschitz", lipschitz)
    return Bound(
        {"complexity": 2.0 * slope * positive_model_complexity(norm, radius, n)},
        assumptions=(
            IID,
            AHEAD,
            "the fit minimizes the mean loss over the whole class",
            "the loss has slopes of at most lipschitz in the prediction",
            f"k(x, x) is always at most {radius:g}²",
        ),
        constants={"n": n, "norm": norm, "radius": radius, "lipschitz": slope},
        source=f"{POSITIVE}, (12) with half the constant",
        risk="E R(f) - inf over the class, in the mean over samples",
        trivial=slope * norm * radius**2,
    )
