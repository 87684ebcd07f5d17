"""Making and writing of reports."""

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
    """A report: its numbers, and the page that shows them.

    Attributes
    ----------
    facts : Facts
        Scores, calibration, intervals, crossings, distances, and what they refer to.
    html : str
        The page: a single HTML document that contains its pictures, has no scripts and loads
        nothing.
    """

    facts: Facts
    html: str

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, atomically.

        Parameters
        ----------
        path : str or path
            Path of the file, usually with the suffix ``.html``.

        Returns
        -------
        Path
            The file.
        """
        return write_whole(path, self.html.encode("utf-8"))

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in its own frame."""
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
    r"""Make a report on a fitted model and some rows.

    Each score compares the mean loss of the model with that of the best constant c for the
    training rows, which is the model without features:

    .. math:: 1 - \frac{\sum_i \ell(y_i - h(x_i))}{\sum_i \ell(y_i - c)}

    The loss is the pinball loss of each level for quantiles, its square for expectiles, and
    squared and absolute errors for other models. The report also has: calibration of quantiles
    with a binomial band; coverage, width and score of intervals, with a band that takes the number
    of calibration rows into account; crossings and what prevents them; the certificate in words;
    the share of rows far from the training rows in the distance of the kernel; pictures; and
    warnings. Parts that do not apply to a model are left out.

    Parameters
    ----------
    estimator : estimator
        Fitted, with ``predict``; by itself or inside pipelines and searches.
    X : DataFrame or array-like of shape (n_samples, n_features)
        Rows, preferably held-out ones, in the form that ``estimator.predict`` takes.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    training : Training or (X, y), optional
        The training rows. They determine the constants, and whether rows of the report were among
        them: if some were, scores are those of the others. Without them the constants are those of
        the rows of the report, and the report says that the training rows are unknown.
    data_name : str, default=""
        Origin of the rows.
    target_name : str, optional
        Name of the target; by default that of ``y``.
    warnings : iterable of str, optional
        Further sentences for the list of warnings.
    draw : bool, default=True
        Whether to draw pictures.

    Returns
    -------
    Report
        It has the page as ``html``, and is shown as such in a notebook.

    Raises
    ------
    ValueError
        If the estimator has no ``predict``, if X is not a dense table, if there is not one finite
        target for each row and prediction, or if ``training`` is the record of another kind of
        model.

    Notes
    -----
    Text from data is escaped, and shown letter by letter in pictures. All rows are scored.
    Pictures show at most 2000 of them, drawn at random, and need matplotlib.

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
