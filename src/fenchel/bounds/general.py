"""Risk bounds for general classes: finite, by Rademacher complexity, by pseudo-dimension."""

from __future__ import annotations

import math

from fenchel._validation import shown
from fenchel.bounds._result import AHEAD, BOOK, IID, Bound, check_count, check_delta, check_real

_ROUNDING = 1e-9
_MOST_LOG = 700.0  # of numbers that are shown: floats end at 709


def tail(delta: float, n: int, empirical: bool = False) -> float:
    """Return √(log(1/δ)/2n), or 3√(log(2/δ)/2n) for empirical complexities."""
    return 3.0 * deviation(math.log(2.0), delta, n) if empirical else deviation(0.0, delta, n)


def deviation(log_size: float, delta: float, n: int) -> float:
    """Return √((log(size) + log(1/δ))/2n), whatever the size."""
    return math.sqrt((log_size - math.log(delta)) / (2.0 * n))


def check_risk(risk: float, most: float) -> float:
    """Return a mean of losses in [0, most], or say what is allowed."""
    risk = check_real("empirical_risk", risk)
    if risk > most * (1.0 + _ROUNDING):
        raise ValueError(
            f"empirical_risk must be at most {most:g}, the largest loss of these assumptions, "
            f"got {risk:g}"
        )
    return risk


def risk_bound(
    empirical_risk: float,
    n: int,
    complexity: float,
    most: float,
    delta: float,
    *,
    assumptions: tuple[str, ...],
    constants: dict[str, float],
    source: str,
    risk: str = "R(h)",
    empirical: bool = False,
) -> Bound:
    """Theorem 11.3 for losses in [0, most] with this complexity, over a class fixed in advance."""
    return Bound(
        {
            "empirical risk": check_risk(empirical_risk, most),
            "complexity": complexity,
            "confidence": most * tail(delta, n, empirical),
        },
        assumptions=(IID, AHEAD, *assumptions),
        constants={"n": n, **constants, "delta": delta},
        source=source,
        risk=risk,
        trivial=most,
    )


def finite_class_bound(
    empirical_risk: float,
    n: int,
    *,
    n_hypotheses: int,
    loss_bound: float,
    delta: float = 0.05,
    two_sided: bool = False,
) -> Bound:
    r"""Bound the risk of a finite class of functions.

    .. math:: R(h) \le \hat R_S(h) + M \sqrt{\frac{\log |H| + \log(1/\delta)}{2n}}

    Parameters
    ----------
    empirical_risk : float
        Mean loss of h on the sample.
    n : int
        Sample size.
    n_hypotheses : int
        Number of functions \|H\|. 1 gives the test-set bound for a function that was fitted
        without the sample.
    loss_bound : float
        Bound M with losses in [0, M].
    delta : float, default=0.05
        Probability of failure.
    two_sided : bool, default=False
        Whether to bound \|R - R̂\|, with log(2/δ).

    Returns
    -------
    Bound
        The bound with its terms, assumptions and caveats.

    References
    ----------
    Theorem 11.1 of the book.

    Examples
    --------
    >>> from fenchel.bounds import finite_class_bound
    >>> print(finite_class_bound(0.1, 1000, n_hypotheses=10, loss_bound=1.0))
    R(h) <= 0.15147
               0.1  empirical risk
           0.05147  confidence
    with n = 1000, n_hypotheses = 10, loss_bound = 1, delta = 0.05
    if the n rows are drawn independently from the distribution that the risk is of
    if the class of functions was fixed without looking at the sample
    if losses lie in [0, loss_bound]
    source: Mohri, Rostamizadeh, Talwalkar, Foundations of Machine Learning, theorem 11.1
    """
    n, size = check_count("n", n), check_count("n_hypotheses", n_hypotheses, any_size=True)
    most, delta = check_real("loss_bound", loss_bound), check_delta(delta)
    log_size = math.log(2 * size if two_sided else size)
    number = {"n_hypotheses": size} if log_size < _MOST_LOG else {"log n_hypotheses": log_size}
    return Bound(
        {
            "empirical risk": check_risk(empirical_risk, most),
            "confidence": most * deviation(log_size, delta, n),
        },
        assumptions=(IID, AHEAD, "losses lie in [0, loss_bound]"),
        constants={"n": n, **number, "loss_bound": most, "delta": delta},
        source=f"{BOOK}, theorem 11.1",
        risk="R(h)",
        trivial=most,
    )


def lipschitz_bound(
    empirical_risk: float,
    n: int,
    *,
    rademacher: float,
    lipschitz: float,
    loss_bound: float,
    delta: float = 0.05,
    empirical: bool = False,
) -> Bound:
    r"""Bound the risk for a Lipschitz loss by the Rademacher complexity of the class.

    .. math:: R(h) \le \hat R_S(h) + 2 \mu R_n(H) + M \sqrt{\frac{\log(1/\delta)}{2n}}, \qquad
              R(h) \le \hat R_S(h) + 2 \mu \hat R_S(H) + 3 M \sqrt{\frac{\log(2/\delta)}{2n}}

    Each bound holds with probability 1 - δ for all h in H simultaneously. To take the smaller one
    after computing both, use δ/2 for each.

    Parameters
    ----------
    empirical_risk, n, loss_bound, delta
        As in :func:`finite_class_bound`.
    rademacher : float
        R_n(H), or R̂_S(H) if ``empirical``, or an upper bound on it.
    lipschitz : float
        Lipschitz constant μ of the loss in the prediction, over all possible residuals.
    empirical : bool, default=False
        Whether ``rademacher`` is the empirical complexity of this sample (second formula).

    Returns
    -------
    Bound
        The bound with its terms, assumptions and caveats.

    References
    ----------
    Theorem 11.3 of the book.

    Examples
    --------
    >>> from fenchel.bounds import l1_ball_complexity, lipschitz_bound
    >>> complexity = l1_ball_complexity(1.0, 1.0, 50, 10_000)
    >>> lipschitz_bound(0.2, 10_000, rademacher=complexity, lipschitz=1.0, loss_bound=2.0).value
    0.28517...
    """
    n, delta = check_count("n", n), check_delta(delta)
    slope, most = check_real("lipschitz", lipschitz), check_real("loss_bound", loss_bound)
    average = check_real("rademacher", rademacher)
    return risk_bound(
        empirical_risk,
        n,
        2.0 * slope * average,
        most,
        delta,
        assumptions=(
            "losses lie in [0, loss_bound] and have slopes of at most lipschitz in the prediction",
        ),
        constants={"rademacher": average, "lipschitz": slope, "loss_bound": most},
        source=f"{BOOK}, theorem 11.3",
        empirical=empirical,
    )


def pseudo_dimension_bound(
    empirical_risk: float,
    n: int,
    *,
    dimension: int,
    loss_bound: float,
    delta: float = 0.05,
    of: str = "losses",
) -> Bound:
    r"""Bound the risk by the pseudo-dimension of the class.

    .. math:: R(h) \le \hat R_S(h) + M \sqrt{\frac{2 d \log(en/d)}{n}}
              + M \sqrt{\frac{\log(1/\delta)}{2n}}

    The d of the theorem is the pseudo-dimension of the class of *losses* (x, y) ↦ L(h(x), y), not
    that of the functions h. Consider a loss of the residual that increases on both sides of 0. It
    exceeds a threshold if the residual is above one number or below another. So n rows are
    separated in at most (en/D)^{2D} ways, with D the pseudo-dimension of the functions:
    ``of="functions"`` replaces d log(en/d) by 2 D log(en/D).

    Parameters
    ----------
    empirical_risk, delta
        As in :func:`finite_class_bound`.
    n : int
        Sample size. If n < d, n replaces d; the printed formula is wrong in this case.
    dimension : int
        Pseudo-dimension d or D.
    loss_bound : float
        Bound M with losses in [0, M]. Affine functions with unbounded weights have none unless
        predictions are clipped, which does not increase D.
    of : {"losses", "functions"}, default="losses"
        The class to which ``dimension`` belongs.

    Returns
    -------
    Bound
        The bound with its terms, assumptions and caveats.

    References
    ----------
    Theorem 11.8 of the book, with a different proof, see ``docs/mathematics.md``, "Bounds".

    Examples
    --------
    >>> from fenchel.bounds import affine_pseudo_dimension, pseudo_dimension_bound
    >>> pseudo_dimension_bound(
    ...     0.1, 10_000, dimension=affine_pseudo_dimension(2), loss_bound=1.0, of="functions"
    ... )
    Bound(0.2168 = empirical risk 0.1, complexity 0.1046, confidence 0.01224; Mohri, ...)
    """
    n, d = check_count("n", n), check_count("dimension", dimension, low=0)
    most, delta = check_real("loss_bound", loss_bound), check_delta(delta)
    if of not in ("losses", "functions"):
        raise ValueError(f"of must be 'losses' or 'functions', got {shown(of)}")
    effective = min(d, n)
    growth = effective * math.log(math.e * n / effective) if effective else 0.0
    growth *= 2.0 if of == "functions" else 1.0
    return risk_bound(
        empirical_risk,
        n,
        most * math.sqrt(2.0 * growth / n),
        most,
        delta,
        assumptions=(f"losses lie in [0, loss_bound], dimension is that of the {of}",),
        constants={"dimension": d, "loss_bound": most},
        source=f"{BOOK}, theorem 11.8",
    )
