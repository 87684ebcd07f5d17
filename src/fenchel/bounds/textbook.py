"""Risk bounds of chapter 11 of Foundations of Machine Learning."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from fenchel.bounds._result import BOOK, Bound, check_count, check_delta, check_real
from fenchel.bounds.complexity import kernel_ball_complexity, l1_ball_complexity
from fenchel.bounds.general import risk_bound

_RESIDUALS = "|h(x) - y| <= residual_bound for all functions of the class, always"


def kernel_ridge_bound(
    empirical_risk: float,
    n: int,
    *,
    norm: float,
    radius: float,
    residual_bound: float,
    trace: float | None = None,
    delta: float = 0.05,
) -> Bound:
    r"""Bound the mean squared error of functions in an RKHS ball.

    .. math:: E(h(x) - y)^2 \le \frac1n \sum_i (h(x_i) - y_i)^2
              + 4 M \frac{\Lambda r}{\sqrt n} + M^2 \sqrt{\frac{\log(1/\delta)}{2n}}

    With the trace of the Gram matrix, the last two terms are 4 M Λ √(tr K)/n + 3 M²
    √(log(2/δ)/2n). The squared loss has no factor ½, so its slope is at most 2M.

    Parameters
    ----------
    empirical_risk : float
        Mean squared residual on the sample.
    n : int
        Sample size.
    norm : float
        Bound Λ with \|\|h\|\| <= Λ for all functions of the class.
    radius : float
        r with k(x, x) <= r² for all x.
    residual_bound : float
        Bound M with \|h(x) - y\| <= M for all functions of the class and all (x, y).
    trace : float, optional
        Trace of the Gram matrix of the sample. If given, the second bound is used.
    delta : float, default=0.05
        Probability of failure.

    Returns
    -------
    Bound
        The bound with its terms, assumptions and caveats.

    References
    ----------
    Theorem 11.11 of the book.

    Examples
    --------
    >>> from fenchel.bounds import kernel_ridge_bound
    >>> kernel_ridge_bound(0.1, 10_000, norm=1.0, radius=1.0, residual_bound=2.0).value
    0.22895...
    """
    ball = _Ball(n, norm, radius, residual_bound, trace, delta)
    return ball.bound(empirical_risk, 0.0, True, "11.11", "E (h(x) - y)²")


def svr_bound(
    empirical_risk: float,
    n: int,
    *,
    norm: float,
    radius: float,
    residual_bound: float,
    epsilon: float = 0.0,
    trace: float | None = None,
    delta: float = 0.05,
) -> Bound:
    r"""Bound the ε-insensitive loss of functions in an RKHS ball.

    .. math:: E|h(x) - y|_\varepsilon \le \frac1n \sum_i |h(x_i) - y_i|_\varepsilon
              + 2 \frac{\Lambda r}{\sqrt n} + (M - \varepsilon) \sqrt{\frac{\log(1/\delta)}{2n}}

    With the trace, the last two terms are 2 Λ √(tr K)/n + 3 (M - ε) √(log(2/δ)/2n). The book has M
    in place of M - ε, which is also valid: a residual of at most M has a loss of at most M - ε.

    Parameters
    ----------
    empirical_risk : float
        Mean of max(0, \|residual\| - ε) on the sample.
    epsilon : float, default=0
        Half the width ε of the tube, chosen without the sample.
    n, norm, radius, residual_bound, trace, delta
        As in :func:`kernel_ridge_bound`.

    Returns
    -------
    Bound
        The bound with its terms, assumptions and caveats.

    References
    ----------
    Theorem 11.13 of the book.

    Examples
    --------
    >>> from fenchel.bounds import svr_bound
    >>> svr_bound(0.1, 10_000, norm=1.0, radius=1.0, residual_bound=2.0, epsilon=0.5).value
    0.13835...
    """
    ball = _Ball(n, norm, radius, residual_bound, trace, delta)
    return ball.bound(empirical_risk, epsilon, False, "11.13", "E max(0, |h(x) - y| - ε)")


def quadratic_svr_bound(
    empirical_risk: float,
    n: int,
    *,
    norm: float,
    radius: float,
    residual_bound: float,
    epsilon: float = 0.0,
    trace: float | None = None,
    delta: float = 0.05,
) -> Bound:
    r"""Bound the squared ε-insensitive loss of functions in an RKHS ball.

    .. math:: E|h(x) - y|_\varepsilon^2 \le \frac1n \sum_i |h(x_i) - y_i|_\varepsilon^2
              + 4 (M - \varepsilon) \frac{\Lambda r}{\sqrt n}
              + (M - \varepsilon)^2 \sqrt{\frac{\log(1/\delta)}{2n}}

    With the trace, the last two terms are 4 (M - ε) Λ √(tr K)/n + 3 (M - ε)² √(log(2/δ)/2n). The
    book has M in place of M - ε, which is also valid. The squared loss has no factor ½.

    Parameters
    ----------
    empirical_risk : float
        Mean of max(0, \|residual\| - ε)² on the sample.
    epsilon : float, default=0
        Half the width ε of the tube, chosen without the sample; 0 gives
        :func:`kernel_ridge_bound`.
    n, norm, radius, residual_bound, trace, delta
        As in :func:`kernel_ridge_bound`.

    Returns
    -------
    Bound
        The bound with its terms, assumptions and caveats.

    References
    ----------
    Theorem 11.14 of the book.

    Examples
    --------
    >>> from fenchel.bounds import quadratic_svr_bound
    >>> quadratic_svr_bound(
    ...     0.1, 10_000, norm=1.0, radius=1.0, residual_bound=2.0, epsilon=0.5
    ... ).value
    0.18753...
    """
    ball = _Ball(n, norm, radius, residual_bound, trace, delta)
    return ball.bound(empirical_risk, epsilon, True, "11.14", "E max(0, |h(x) - y| - ε)²")


def lasso_bound(
    empirical_risk: float,
    n: int,
    *,
    norm: float,
    radius: float,
    n_features: int,
    residual_bound: float,
    delta: float = 0.05,
) -> Bound:
    r"""Bound the mean squared error of linear functions in an l1 ball.

    .. math:: E(w^\top x - y)^2 \le \frac1n \sum_i (w^\top x_i - y_i)^2
              + 4 r_\infty \Lambda_1 M \sqrt{\frac{2 \log(2d)}{n}}
              + M^2 \sqrt{\frac{\log(1/\delta)}{2n}}

    The book prints 2 r∞ Λ₁ M, which is half of the constant that follows from theorem 11.15 and
    theorem 11.3 with the slope 2M of the squared loss.

    Parameters
    ----------
    empirical_risk, n, delta
        As in :func:`kernel_ridge_bound`.
    norm : float
        Bound Λ₁ with \|\|w\|\|₁ <= Λ₁ for all functions of the class.
    radius : float
        Bound r∞ with \|x_j\| <= r∞ for all features.
    n_features : int
        Number of features d.
    residual_bound : float
        Bound M with \|wᵀx - y\| <= M for all functions of the class and all (x, y).

    Returns
    -------
    Bound
        The bound with its terms, assumptions and caveats.

    References
    ----------
    Theorems 11.15 and 11.16 of the book, with corrected constant.

    Examples
    --------
    >>> from fenchel.bounds import lasso_bound
    >>> lasso_bound(
    ...     0.1, 10_000, norm=1.0, radius=1.0, n_features=50, residual_bound=2.0
    ... ).value
    0.39174...
    """
    n, delta = check_count("n", n), check_delta(delta)
    M = check_real("residual_bound", residual_bound)
    average = l1_ball_complexity(radius, norm, n_features, n)
    ball = {"norm": norm, "radius": radius, "n_features": n_features, "residual_bound": M}
    return risk_bound(
        empirical_risk,
        n,
        4.0 * M * average,
        M**2,
        delta,
        assumptions=(
            "all weights of the class have an l1 norm of at most norm, and |x_j| <= radius always",
            _RESIDUALS,
        ),
        constants=ball,
        source=f"{BOOK}, theorem 11.16 with 4 r∞ Λ₁ M in place of 2 r∞ Λ₁ M",
        risk="E (h(x) - y)²",
    )


def perturbed_kernel_bound(
    difference: float, n: int, *, target_bound: float, strength: float
) -> Bound:
    r"""Bound the change of the dual coefficients of ridge regression with the kernel matrix.

    .. math:: \|a' - a\| \le \frac{\sqrt n\, M\, \|K' - K\|_2}{\lambda^2}

    for a = (K + λ I)⁻¹ y and a' = (K' + λ I)⁻¹ y. Predictions of the training rows are y - λ a and
    y - λ a', so they differ by at most λ times this bound. For a fitted estimator see
    :func:`truncation_bound`.

    Parameters
    ----------
    difference : float
        ‖K' - K‖₂, the largest absolute eigenvalue, or a bound on it.
    n : int
        Number of rows.
    target_bound : float
        Bound M with \|y\| <= M.
    strength : float
        Strength λ = alpha n > 0.

    Returns
    -------
    Bound
        The bound with its terms, assumptions and caveats.

    References
    ----------
    Exercise 11.4 of the book.

    Examples
    --------
    >>> from fenchel.bounds import perturbed_kernel_bound
    >>> perturbed_kernel_bound(0.5, 100, target_bound=1.0, strength=2.0).value
    1.25
    """
    n, difference = check_count("n", n), check_real("difference", difference)
    most = check_real("target_bound", target_bound)
    strength = check_real("strength", strength, open_low=True)
    length = math.sqrt(n) * most / strength  # of either vector
    return Bound(
        {"kernel": difference * length / strength},
        assumptions=("K and K' are positive semi-definite", "|y| <= target_bound"),
        constants={"n": n, "difference": difference, "strength": strength},
        source=f"{BOOK}, exercise 11.4",
        risk="‖a' - a‖",
        trivial=length,
    )


def squared_loss_bound(
    empirical_risk: float,
    n: int,
    *,
    norm: float,
    radius: float,
    residual_bound: float,
    delta: float = 0.05,
) -> Bound:
    r"""Bound the mean squared error by the bound for the absolute loss.

    .. math:: E(h(x) - y)^2 \le \frac{M}{n} \sum_i |h(x_i) - y_i|
              + M \Big(2 \frac{\Lambda r}{\sqrt n} + M \sqrt{\frac{\log(1/\delta)}{2n}}\Big)

    This follows from ξ² <= M \|ξ\| for residuals of at most M. If M = 2rΛ <= 1, the squared loss
    is at most the absolute loss. Compared to :func:`kernel_ridge_bound`, the complexity term is
    half as large and the empirical term is larger.

    Parameters
    ----------
    empirical_risk : float
        Mean *absolute* residual on the sample.
    n, norm, radius, residual_bound, delta
        As in :func:`kernel_ridge_bound`; for \|y\| <= r Λ, M = 2rΛ.

    Returns
    -------
    Bound
        The bound with its terms, assumptions and caveats.

    References
    ----------
    Exercise 11.6 of the book.

    Examples
    --------
    >>> from fenchel.bounds import squared_loss_bound
    >>> squared_loss_bound(0.1, 10_000, norm=0.5, radius=1.0, residual_bound=1.0).value
    0.12223...
    """
    absolute = svr_bound(
        empirical_risk, n, norm=norm, radius=radius, residual_bound=residual_bound, delta=delta
    )
    most = absolute.constants["residual_bound"]
    return replace(
        absolute,
        terms={name: most * term for name, term in absolute.terms.items()},
        source=f"{BOOK}, exercise 11.6",
        risk="E (h(x) - y)²",
        trivial=most**2,
    )


class _Ball(NamedTuple):
    """The functions of norm at most Λ, on a sample."""

    n: int
    norm: float
    radius: float
    residual_bound: float
    trace: float | None
    delta: float

    def bound(
        self, empirical_risk: float, epsilon: float, squared: bool, theorem: str, risk: str
    ) -> Bound:
        """Theorem 11.3 for ``max(0, |residual| - ε)``, or its square."""
        n, trace, delta = check_count("n", self.n), self.trace, check_delta(self.delta)
        M, epsilon = (
            check_real("residual_bound", self.residual_bound),
            check_real("epsilon", epsilon),
        )
        norm, radius = check_real("norm", self.norm), check_real("radius", self.radius)
        constants = {"norm": norm, "radius": radius, "residual_bound": M}
        if epsilon:
            constants["epsilon"] = epsilon
        most = max(M - epsilon, 0.0)
        slope = 2.0 * most if squared else float(most > 0.0)
        most = most**2 if squared else most
        if trace is not None:
            constants["trace"] = check_real("trace", trace)
            if trace > n * radius**2 * (1.0 + 1e-9):
                raise ValueError(
                    f"trace must be at most n radius² = {n * radius**2:g}, got {trace:g}: "
                    "some k(x, x) exceeds radius²"
                )
        complexity = kernel_ball_complexity(n * radius**2 if trace is None else trace, norm, n)
        return risk_bound(
            empirical_risk,
            n,
            2.0 * slope * complexity,
            most,
            delta,
            assumptions=(
                "functions of the class have a norm of at most norm, and k(x, x) <= radius² "
                "always",
                _RESIDUALS,
            ),
            constants=constants,
            source=f"{BOOK}, theorem {theorem}",
            risk=risk,
            empirical=trace is not None,
        )
