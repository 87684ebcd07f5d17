"""Conversion between alpha, with the mean of the losses, and C, with their sum."""

from __future__ import annotations

from fenchel._validation import BOOLEAN, POSITIVE


def alpha_of(C: float, n_samples: float, *, squared: bool = False) -> float:
    r"""Return alpha for a given C, or C for a given alpha: the formula is its own inverse.

    .. math:: \frac{\alpha}{2} \|h\|^2 + \frac1N \sum_i s_i\, \ell_i \quad\text{and}\quad
              \frac12 \|h\|^2 + C \sum_i s_i\, \ell_i
              \quad\text{are the same up to a factor for}\quad \alpha = \frac{1}{C N}

    The batch estimators of this library use alpha, with the mean of the losses, which does not
    change as rows are added. The online learners use C, as they do not know the number of rows;
    scikit-learn's ``SVR`` and the papers use C too.

    Parameters
    ----------
    C : float
        C > 0, or alpha.
    n_samples : float
        N > 0, the number of rows or the sum of their weights.
    squared : bool, default=False
        Whether the loss has a factor ½ with alpha and none with C; then alpha = 1 / (2 C N).
        This holds for ``loss="squared_epsilon_insensitive"`` in ``SVR``, compared with the
        textbook, scikit-learn's ``LinearSVR`` and :class:`fenchel.online.OnlineQuadraticSVR`.

    Returns
    -------
    float

    Examples
    --------
    >>> from fenchel.regression import alpha_of
    >>> alpha_of(2.0, 100), alpha_of(0.005, 100)
    (0.005, 2.0)
    """
    POSITIVE(C, "C")
    POSITIVE(n_samples, "n_samples")
    BOOLEAN(squared, "squared")
    return 1.0 / ((2.0 if squared else 1.0) * float(C) * float(n_samples))
