"""Kernel ridge regression."""

from __future__ import annotations

from typing import Any

from fenchel.losses import Loss, Squared
from fenchel.regression._multi import TargetRegressor


class KernelRidge(TargetRegressor):
    r"""Kernel ridge regression in closed form, with an intercept and a certificate.

    .. math:: \min_{h, b}\; \frac{\alpha}{2} \|h\|_K^2
              + \frac{1}{2 \sum_i s_i} \sum_i s_i\, \|y_i - h(x_i) - b\|^2, \qquad
              (K + \alpha N\, \mathrm{diag}(1/s))\, \mathrm{dual\_coef} = y - b

    with N the sum of the weights s; without weights that is K + alpha N I.

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the regularization, > 0. scikit-learn's ``KernelRidge(alpha)`` is
        alpha * n_samples here.
    kernel : None, str, kernel, callable or OperatorKernel, default=None
        See :func:`fenchel.kernels.as_kernel`; outputs have nothing in common but the loss,
        unless an :class:`fenchel.kernels.OperatorKernel` couples them.
    fit_intercept : bool, default=True
        Whether each output has a free offset.
    features : {"auto", "cholesky", "nystroem", "fourier"} or FeatureMap, default="auto"
        How the kernel becomes features.
    rank : int, optional
        Cap on the rank of the feature map.
    solver : str or Solver, default="auto"
        A name in ``fenchel.solvers.SOLVERS``, or a solver; "auto" is "closed_form", and
        "newton" with an operator-valued kernel.
    tol : float, default=1e-6
        Relative duality gap above which a warning says that rounding errors dominate.
    max_iter : int, default=1000
        Limit on the number of steps of an iterative solver.
    warm_start : bool, default=False
        Whether an iterative solver starts from the previous fit.
    random_state : int, RandomState or None, default=None
        Seed of subsamples and random features; None is a fixed seed.
    verbose : int, default=0
        If positive, the gap is printed.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_support, n_outputs)
        α with h(x) = k(x, X[support_]) @ dual_coef_; with an operator-valued kernel K,
        h(x) = Σ_i K(x, X[support_[i]]) @ dual_coef_[i].
    support_ : ndarray of shape (n_support,)
        Rows with a dual coefficient that is not zero: all, as a rule.
    offset_ : ndarray of shape (n_outputs,)
        The offsets b.
    weights_, certificate_, loss_, status_, kernel_, kernel_error_, feature_map_, n_iter_, \
history_, n_features_in_, feature_names_in_
        As in :class:`QuantileRegressor`.

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, Foundations of Machine Learning, section 11.3.2.

    Examples
    --------
    >>> from fenchel import KernelRidge
    >>> from fenchel.datasets import make_sine_quantiles
    >>> X, y, _ = make_sine_quantiles(200, random_state=0)
    >>> KernelRidge(alpha=1e-4).fit(X, y).predict(X).shape
    (200,)
    """

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        kernel: Any = None,
        fit_intercept: bool = True,
        features: Any = "auto",
        rank: int | None = None,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.fit_intercept = fit_intercept
        self.features = features
        self.rank = rank
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, n_targets: int) -> Loss:
        return Squared()
