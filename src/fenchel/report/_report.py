"""The report itself."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fenchel.persistence import write_whole
from fenchel.report._facts import Facts, gather
from fenchel.report._html import element
from fenchel.report._page import page
from fenchel.report._pictures import pictures
from fenchel.report._training import Training


@dataclass(frozen=True)
class Report:
    """A report: the numbers, and the page that shows them.

    Attributes
    ----------
    facts : Facts
        Scores, calibration, intervals, crossings, distances, and what they are of.
    html : str
        The page: one HTML document with its pictures inside, without scripts, that loads
        nothing.
    """

    facts: Facts
    html: str

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, which is whole or not there.

        Parameters
        ----------
        path : str or path
            Where to; ``.html`` is the usual ending.

        Returns
        -------
        Path
            The file.
        """
        return write_whole(path, self.html.encode("utf-8"))

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own."""
        style = "width:100%;height:40rem;border:1px solid #d0d0d0"
        return element("iframe", srcdoc=self.html, sandbox="", style=style, title="report")


def make_report(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    training: Training | tuple[Any, Any] | None = None,
    data_name: str = "",
    target_name: str | None = None,
    warnings: Iterable[str] = (),
    draw: bool = True,
) -> Report:
    r"""Report what a fitted model does on some rows.

    For each score, the mean loss of the model is held against that of the best constant c of
    the rows of the fit, which is the one without features:

    .. math:: 1 - \frac{\sum_i \ell(y_i - h(x_i))}{\sum_i \ell(y_i - c)}

    with the pinball loss of each level for quantiles, its square for expectiles, and squared and
    absolute errors for other models. Beside these: calibration of quantiles with a binomial
    band, coverage, width and score of intervals with a band that knows how many rows calibrated
    them, crossings and what forbids them, the certificate in words, the share of rows far from
    those of the fit in the distance of the kernel, pictures, and warnings. What does not apply
    to a model is left out.

    Parameters
    ----------
    estimator : estimator
        Fitted, with ``predict``; bare, or inside pipelines and searches.
    X : DataFrame or array-like of shape (n_samples, n_features)
        Rows, best those that the fit has not seen, in the form that ``estimator.predict`` takes.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    training : Training or (X, y), optional
        The rows of the fit. They give the constants, and tell whether the rows of the report were
        among them: if some were, scores are of the others. Without them the constants are those
        of the rows of the report, and the report says that it does not know.
    data_name : str, default=""
        Where the rows came from.
    target_name : str, optional
        Name of the target; that of ``y`` by default.
    warnings : iterable of str, optional
        Further sentences for the list of warnings.
    draw : bool, default=True
        Whether there are pictures.

    Returns
    -------
    Report
        With the page as ``html``; it shows itself in a notebook.

    Raises
    ------
    ValueError
        If the estimator has no ``predict``, if X is not a dense table, if there is not one finite
        target for each row and prediction, or if ``training`` is the record of another kind of
        model.

    Notes
    -----
    Text from data is escaped, and shown letter by letter in pictures. All rows are scored; at
    most 2000 of them, drawn at random, are shown in pictures. Pictures need matplotlib.

    References
    ----------
    Koenker, Machado (1999), Goodness of fit and related inference processes for quantile
    regression, eq. (3): the share of the pinball loss explained.

    Examples
    --------
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.report import make_report
    >>> X, y = load_engel(return_X_y=True, as_frame=True)
    >>> model = QuantileRegressor([0.1, 0.5, 0.9], alpha=1e-5).fit(X[::2], y[::2])
    >>> report = make_report(model, X[1::2], y[1::2], training=(X[::2], y[::2]))
    >>> report.facts.kind_of_rows, [score.explained > 0 for score in report.facts.scores]
    ('held-out', [True, True, True])
    >>> report.html.startswith("<!DOCTYPE html>")
    True
    """
    rows = np.asarray(X) if isinstance(X, (list, tuple)) else X
    if isinstance(training, tuple):
        training = Training.of(estimator, *training)
    facts = gather(estimator, rows, y, training, data_name, target_name, list(warnings))
    return Report(facts, page(facts, pictures(facts, rows) if draw else []))
