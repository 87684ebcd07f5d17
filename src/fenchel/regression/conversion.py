"""One rule between the strengths of the mean form, alpha, and of the sum form, C."""

from __future__ import annotations

from fenchel._validation import BOOLEAN, POSITIVE


def alpha_of(C: float, n_samples: float, *, squared: bool = False) -> float:
    r"""Return alpha for a C, or C for an alpha: the rule is its own inverse.

    .. math:: \frac{\alpha}{2} \|h\|^2 + \frac1N \sum_i s_i\, \ell_i \quad\text{and}\quad
              \frac12 \|h\|^2 + C \sum_i s_i\, \ell_i
              \quad\text{are the same up to a factor for}\quad \alpha = \frac{1}{C N}

    Estimators here have alpha, in the mean form, which does not change as rows are added; the
    online learners have C, as they know of no last row, and so have
    scikit-learn's ``SVR`` and the papers.

    Parameters
    ----------
    C : float
        C > 0, or alpha.
    n_samples : float
        N > 0, the number of rows, or the sum of their weights.
    squared : bool, default=False
        Whether the loss beside C is a square without the ½ that it has beside alpha: then
        alpha = 1 / (2 C N). So it is for ``loss="squared_epsilon_insensitive"`` in ``SVR``, beside
        the textbook, scikit-learn's ``LinearSVR`` and :class:`fenchel.online.OnlineQuadraticSVR`.

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
