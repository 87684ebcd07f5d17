"""Risk bounds of the papers: joint quantiles, ε-insensitive losses, non-negative models."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fenchel._typing import FloatArray
from fenchel._validation import check_levels, shown
from fenchel.bounds._result import (
    AHEAD,
    IID,
    JOINT,
    POSITIVE,
    SPARSE,
    Bound,
    check_count,
    check_delta,
    check_real,
)
from fenchel.bounds.complexity import positive_model_complexity
from fenchel.bounds.general import risk_bound, tail


def joint_quantile_bound(
    empirical_risk: float,
    n: int,
    *,
    levels: npt.ArrayLike,
    norm: float,
    diagonal: npt.ArrayLike,
    target_bound: float,
    offset_bound: float = 0.0,
    delta: float = 0.05,
    contraction: str = "outputs",
) -> Bound:
    r"""Bound the pinball loss, summed over levels, in a ball of a vector-valued RKHS.

    .. math:: R(h) \le \hat R_n(h)
              + 2 \sum_j w_j \frac{c \sqrt{\kappa_j} + \beta}{\sqrt n}
              + \sum_j w_j (a + \beta + c \sqrt{\kappa_j}) \sqrt{\frac{\log(1/\delta)}{2n}},
              \qquad w_j = \max(\tau_j, 1 - \tau_j)

    for h = f + b with the norm of f at most c, offsets \|b_j\| <= β, \|y\| <= a, and κ_j a bound
    on the j-th diagonal entry of K(x, x). ``contraction="vector"`` is the published theorem,

    .. math:: R(h) \le \hat R_n(h) + 2 \sqrt 2\, c \sqrt{\frac{p \kappa}{n}}
              + (2 p a + c \sqrt{p \kappa}) \sqrt{\frac{\log(1/\delta)}{2n}}, \qquad
              \kappa = \sum_j \kappa_j

    for an offset b that was fixed in advance, with \|b_j\| <= a. As the loss is a sum over
    outputs, each term can be contracted separately, without √2 and √p. The first formula is never
    larger for b = 0, and it allows offsets that were fitted to the sample.

    Parameters
    ----------
    empirical_risk : float
        Mean over rows of the sum over levels of the pinball loss.
    n : int
        Sample size.
    levels : array-like of shape (p,)
        Quantile levels τ.
    norm : float
        Bound c on the norm of f.
    diagonal : array-like of shape (p,) or float
        Bounds κ_j with K(x, x)_jj <= κ_j for all x. For a decomposable kernel k B: r² B_jj.
    target_bound : float
        Bound a with \|y\| <= a.
    offset_bound : float, default=0
        Bound β on offsets that were fitted to the sample; must be 0 with ``contraction="vector"``.
    delta : float, default=0.05
        Probability of failure.
    contraction : {"outputs", "vector"}, default="outputs"
        Which of the two formulas to use.

    Returns
    -------
    Bound
        The bound with its terms, assumptions and caveats.

    References
    ----------
    Theorem 4.1 (A.3) of the paper of 2016.

    Examples
    --------
    >>> from fenchel.bounds import joint_quantile_bound
    >>> known = {"levels": [0.1, 0.5, 0.9], "norm": 1.0, "diagonal": 1.0, "target_bound": 1.0}
    >>> joint_quantile_bound(0.5, 10_000, **known)
    Bound(0.6023 = empirical risk 0.5, complexity 0.046, confidence 0.0563; Sangnier, ...)
    >>> joint_quantile_bound(0.5, 10_000, contraction="vector", **known)
    Bound(0.695 = empirical risk 0.5, complexity 0.08485, confidence 0.1101; Sangnier, ...)
    """
    n, delta = check_count("n", n), check_delta(delta)
    tau = check_levels(levels)
    kappa = check_diagonal(diagonal, len(tau))
    c, a = check_real("norm", norm), check_real("target_bound", target_bound)
    beta = check_real("offset_bound", offset_bound)
    slope = np.maximum(tau, 1.0 - tau)
    p = len(tau)
    if contraction == "outputs":
        size = c * np.sqrt(kappa)
        complexity = 2.0 * float(slope @ (size + beta)) / math.sqrt(n)
        most = float(slope @ (a + beta + size))
        source = f"{JOINT}, theorem 4.1, contracted output by output"
        offset = "offsets are at most offset_bound in absolute value"
    elif contraction == "vector":
        if beta > 0.0:
            raise ValueError(
                "offset_bound must be 0 with contraction='vector', whose offsets are fixed in "
                f"advance, got {shown(offset_bound)}"
            )
        size = c * math.sqrt(p * kappa.sum())
        complexity = 2.0 * math.sqrt(2.0) * size / math.sqrt(n)
        most = 2.0 * p * a + size
        source = f"{JOINT}, theorem 4.1"
        offset = "offsets were fixed in advance, at most target_bound in absolute value"
    else:
        raise ValueError(f"contraction must be 'outputs' or 'vector', got {shown(contraction)}")
    return risk_bound(
        empirical_risk,
        n,
        complexity,
        most,
        delta,
        assumptions=(
            "all functions of the class have a norm of at most norm, and K(x, x)_jj is at most "
            "diagonal_j always",
            "|y| <= target_bound always",
            offset,
        ),
        constants={
            "n_levels": p,
            "norm": c,
            "trace": float(kappa.sum()),
            "target_bound": a,
            "offset_bound": beta,
        },
        source=source,
        risk="E Σ_j pinball_j(y - h_j(x))",
    )


class Interval(NamedTuple):
    """A lower and an upper bound that hold simultaneously.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.bounds import quantile_deviation_bound
    >>> residuals = np.linspace(-9.0, 1.0, 10_000)  # a tenth is positive: the level 0.9
    >>> found = quantile_deviation_bound(residuals, margin=1.0, norm=1.0, radius=1.0)
    >>> found.lower.value < 0.9 < found.upper.value
    True
    """

    lower: Bound
    upper: Bound


def quantile_deviation_bound(
    residuals: npt.ArrayLike,
    *,
    margin: float,
    norm: float,
    radius: float,
    offset_bound: float = 0.0,
    delta: float = 0.05,
) -> Interval:
    r"""Bound the probability that a target is at or below the quantile curve of one level.

    .. math:: \frac1n \sum_i \Gamma^-(r_i) - \Delta \le P(Y \le h_j(X))
              \le \frac1n \sum_i \Gamma^+(r_i) + \Delta, \qquad
              \Delta = \frac{2 (c \rho + \beta)}{\varepsilon \sqrt n}
              + \sqrt{\frac{\log(2/\delta)}{2n}}

    with residuals r_i = y_i - h_j(x_i) and the ramp functions Γ⁺(r) = clip(1 - r/ε, 0, 1) and
    Γ⁻(r) = clip(-r/ε, 0, 1). No bound on y is needed.

    Parameters
    ----------
    residuals : array-like of shape (n,)
        Residuals r_i of one level.
    margin : float
        ε > 0 in the units of y, chosen without the sample.
    norm : float
        Bound c on the norm of the functions of the class.
    radius : float
        ρ with K(x, x)_jj <= ρ² for all x. The paper uses the trace of K(x, x), which is larger.
    offset_bound : float, default=0
        Bound β if the offset was fitted to the sample; 0 if it was fixed in advance.
    delta : float, default=0.05
        Probability that one of the two bounds fails.

    Returns
    -------
    Interval
        ``lower`` and ``upper``, both of type :class:`Bound`.

    References
    ----------
    Theorem 4.2 (A.5) of the paper of 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.bounds import quantile_deviation_bound
    >>> residuals = np.linspace(-1.0, 3.0, 40_000)
    >>> low, high = quantile_deviation_bound(residuals, margin=0.5, norm=1.0, radius=1.0)
    >>> round(low.value, 3), round(high.value, 3)
    (0.161, 0.339)
    """
    r = np.asarray(residuals, dtype=np.float64)
    if r.ndim != 1 or r.size == 0 or not np.all(np.isfinite(r)):
        raise ValueError(
            f"residuals must be a one-dimensional array of finite numbers, got shape {r.shape}"
        )
    epsilon = check_real("margin", margin, open_low=True)
    c, rho = check_real("norm", norm), check_real("radius", radius)
    beta, delta = check_real("offset_bound", offset_bound), check_delta(delta)
    n = len(r)
    complexity = 2.0 * (c * rho + beta) / (epsilon * math.sqrt(n))
    confidence = tail(delta / 2.0, n)
    assumptions = (
        IID,
        AHEAD,
        "all functions of the class have a norm of at most norm, and K(x, x)_jj <= radius² always",
        "offsets are at most offset_bound in absolute value, or fixed in advance if that is 0",
        "the margin was chosen without the sample",
    )
    constants = {
        "n": n,
        "margin": epsilon,
        "norm": c,
        "radius": rho,
        "offset_bound": beta,
        "delta": delta,
    }

    def end(sign: float, ramp: FloatArray) -> Bound:
        return Bound(
            {
                "ramp": float(np.clip(ramp, 0, 1).mean()),
                "complexity": sign * complexity,
                "confidence": sign * confidence,
            },
            assumptions=assumptions,
            constants=constants,
            source=f"{JOINT}, theorem 4.2, with K(x, x)_jj in place of the trace",
            risk="P(Y <= h_j(X))",
            trivial=0.5 * (1.0 + sign),
            lower=sign < 0.0,
        )

    return Interval(end(-1.0, -r / epsilon), end(1.0, 1 - r / epsilon))


def insensitive_excess_bound(
    n: int,
    *,
    rademacher: float,
    lipschitz: float,
    residual_bound: float,
    epsilon: float,
    n_outputs: int = 1,
    delta: float = 0.05,
) -> Bound:
    r"""Bound the excess risk of training with the ε-insensitive version of a loss.

    .. math:: E\,\ell(Y - \hat f_\varepsilon(X)) - \min_{f \in F} E\,\ell(Y - f(X))
              \le 2 \sqrt2 L R_n(F) + 2 L M \sqrt{\frac{\log(2/\delta)}{2n}} + L \varepsilon

    for the minimizer over F of the mean of ℓ_ε on the sample. For one output the scalar
    contraction holds, and there is no √2. The bound is for the *constrained* problem, with a class
    fixed in advance. A penalized fit is only a minimizer over the ball of its own norm.

    Parameters
    ----------
    n : int
        Sample size.
    rademacher : float
        R_n(F) for all outputs together: E sup Σ_ij σ_ij f_j(x_i) / n, including offsets if they
        are fitted.
    lipschitz : float
        Lipschitz constant L of ℓ with respect to the norm of the residual vector; ℓ(0) = 0.
    residual_bound : float
        Bound M on the norm of y - f(x) for all functions of the class.
    epsilon : float
        Radius ε of the insensitive zone.
    n_outputs : int, default=1
        Number of outputs p.
    delta : float, default=0.05
        Probability of failure.

    Returns
    -------
    Bound
        The bound with its terms, assumptions and caveats.

    References
    ----------
    Theorem 2 of the paper of 2017.

    Examples
    --------
    >>> from fenchel.bounds import insensitive_excess_bound
    >>> insensitive_excess_bound(
    ...     10_000, rademacher=0.01, lipschitz=1.0, residual_bound=2.0, epsilon=0.1
    ... )
    Bound(0.1743 = complexity 0.02, confidence 0.05432, insensitivity 0.1; Sangnier, ...)
    """
    n, p, delta = check_count("n", n), check_count("n_outputs", n_outputs), check_delta(delta)
    slope, M = check_real("lipschitz", lipschitz), check_real("residual_bound", residual_bound)
    average, epsilon = check_real("rademacher", rademacher), check_real("epsilon", epsilon)
    factor = 1.0 if p == 1 else math.sqrt(2.0)
    return Bound(
        {
            "complexity": 2.0 * factor * slope * average,
            "confidence": 2.0 * slope * M * tail(delta / 2.0, n),
            "insensitivity": slope * epsilon,
        },
        assumptions=(
            IID,
            AHEAD,
            "the fit minimizes the mean ε-insensitive loss over the whole class",
            "the loss is 0 at residual 0 and has slopes of at most lipschitz",
            "residuals are at most residual_bound long for all functions of the class, always",
        ),
        constants={
            "n": n,
            "rademacher": average,
            "lipschitz": slope,
            "residual_bound": M,
            "epsilon": epsilon,
            "n_outputs": p,
            "delta": delta,
        },
        source=f"{SPARSE}, theorem 2{'' if p > 1 else ', with the scalar contraction'}",
        risk="E ℓ(y - f(x)) - min over the class",
        trivial=slope * M,
    )


def positive_excess_bound(n: int, *, norm: float, radius: float, lipschitz: float) -> Bound:
    r"""Bound the expected excess risk of a non-negative model fitted under a norm constraint.

    .. math:: E\, R(\hat f) - \inf_{f \in F} R(f) \le 2 G R_n(F) \le \frac{2 G L c^2}{\sqrt n},
              \qquad F = \{x \mapsto \varphi(x)^\top A \varphi(x): A \succeq 0, \|A\|_F \le L\}

    for the minimizer of the mean loss over F. The expectation is over samples, so there is no
    probability of failure. The published bound is twice as large, because of its bound on R_n, see
    :func:`positive_model_complexity`.

    Parameters
    ----------
    n : int
        Sample size.
    norm : float
        Bound L on the Frobenius norm, or on any larger norm such as the trace.
    radius : float
        Bound c with k(x, x) <= c² for all x.
    lipschitz : float
        Lipschitz constant G of the loss in the prediction.

    Returns
    -------
    Bound
        The bound with its terms, assumptions and caveats.

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


def check_diagonal(diagonal: npt.ArrayLike, n_outputs: int) -> np.ndarray:
    """Return bounds on the diagonal of K(x, x), one for each output."""
    array = np.asarray(diagonal, dtype=np.float64)
    if array.shape not in ((), (n_outputs,)):
        raise ValueError(
            f"diagonal must be a number or have one entry for each of {n_outputs} levels, got "
            f"shape {array.shape}"
        )
    if not np.all(np.isfinite(array)) or np.any(array < 0.0):
        raise ValueError(f"diagonal must be finite and >= 0, got {shown(diagonal)}")
    return np.broadcast_to(array, (n_outputs,))
