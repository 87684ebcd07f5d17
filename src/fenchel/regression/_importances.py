"""Feature importances of fitted models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fenchel._typing import AnyArray, FloatArray
from fenchel.learning import sample_by_content
from fenchel.metrics import total_effects
from fenchel.metrics.effects import IDLE

_SAMPLE = 1000  # what one row in two hundred has is then missed once in 150 samples
_NUMBERS, _LEAST = 2**17, 128  # of many columns fewer rows, as they are kept with the model


class Importances:
    """Feature importances, for models that keep a few of their training rows."""

    _sample: tuple[FloatArray, ...] | None

    def _evaluate(self, X: Any) -> FloatArray:
        """Return all outputs for validated rows."""
        raise NotImplementedError

    def keep_sample(self, rows: FloatArray | None, weight: FloatArray) -> None:
        """Keep a sample of the rows of a fit, or none if they are not features.

        If there are only few rows, all are kept and the sample is drawn at first access.
        """
        if rows is None:
            self._sample = None
        elif len(rows) <= (most := _most_rows(rows)):
            self._sample = rows.copy(), weight.copy()
        else:
            self._sample = (sample_by_content(rows, weight, most),)

    @property
    def feature_importances_(self) -> FloatArray:
        """Variance of predictions due to each feature, as shares that sum to 1, (d,).

        The effects of :func:`fenchel.metrics.total_effects` divided by their sum: an interaction
        counts for each of its features. If predictions are a product of two features, each has
        0.5. Computed at first access from at most 1000 training rows, in proportion to their
        weights. All zeros if predictions are constant. :attr:`idle_features_` names the features
        that the model does not use.
        """
        return self.importances_of_groups(None)

    def importances_of_groups(self, groups: Sequence[Sequence[int]] | None) -> FloatArray:
        """Importances of groups of columns, summing to 1, (n_groups,).

        Use it for the indicator columns of a category, which change together. Changed one at a
        time, they make rows with two labels or none, which the model has never seen.

        Parameters
        ----------
        groups : sequence of sequences of int or None
            Indices of the columns of each group. With None each column is a group.

        Returns
        -------
        ndarray of shape (n_groups,)
        """
        check_is_fitted(self)
        if self._sample is None:
            raise AttributeError(
                "feature_importances_ needs features, and X was sparse or held kernel values"
            )
        sample, *of_rows = self._sample
        if of_rows:
            # models that version 0.1.0 has saved have the targets in the place of the weights
            weight = of_rows[0] if of_rows[0].ndim == 1 else np.ones(len(sample))
            sample = sample_by_content(sample, weight, _most_rows(sample))
        effects = total_effects(self._evaluate, sample, groups)
        return effects / (effects.sum() or 1.0)

    @property
    def idle_features_(self) -> AnyArray:
        """Names (or indices) of the features with an importance below one thousandth."""
        idle = np.flatnonzero(self.feature_importances_ < IDLE)
        names = getattr(self, "feature_names_in_", None)
        return idle if names is None else names[idle]


def _most_rows(rows: FloatArray) -> int:
    """Number of rows in the sample."""
    return max(_LEAST, min(_SAMPLE, _NUMBERS // max(rows.shape[1], 1)))
