"""Which features a fitted model reads, and how much."""

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
    """Attributes of models that keep a few of their training rows."""

    _sample: tuple[FloatArray, ...] | None

    def _evaluate(self, X: Any) -> FloatArray:
        """All outputs for validated rows."""
        raise NotImplementedError

    def _keep_sample(self, rows: FloatArray | None, targets: FloatArray) -> None:
        """Keep a few rows, or none where these are not features.

        Where there are only a few, they are looked at when they are asked for.
        """
        if rows is None:
            self._sample = None
        elif len(rows) <= (most := _most_rows(rows)):
            self._sample = rows.copy(), targets.copy()
        else:
            self._sample = (sample_by_content(rows, targets, most),)

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of the variance of predictions due to each feature, summing to 1, (d,).

        See :func:`fenchel.metrics.total_effects`, on at most 1000 of the training rows; computed
        when it is asked for. All zeros where predictions are constant. Features that the model
        does not read are named by :attr:`idle_features_`.
        """
        return self.importances_of_groups(None)

    def importances_of_groups(self, groups: Sequence[Sequence[int]] | None) -> FloatArray:
        """Importances of columns together, summing to 1, (n_groups,).

        Indicators of one category change together: one by one they make rows with two labels or
        none, of which a model knows nothing.

        Parameters
        ----------
        groups : sequence of sequences of int or None
            Numbers of columns; None for each by itself.

        Returns
        -------
        ndarray of shape (n_groups,)
        """
        check_is_fitted(self)
        if self._sample is None:
            raise AttributeError(
                "feature_importances_ needs features, and X was sparse or held kernel values"
            )
        sample = self._sample[0]
        if len(self._sample) > 1:
            sample = sample_by_content(sample, self._sample[1], _most_rows(sample))
        effects = total_effects(self._evaluate, sample, groups)
        return effects / (effects.sum() or 1.0)

    @property
    def idle_features_(self) -> AnyArray:
        """Names, or numbers, of features with less than a thousandth of the importance."""
        idle = np.flatnonzero(self.feature_importances_ < IDLE)
        names = getattr(self, "feature_names_in_", None)
        return idle if names is None else names[idle]


def _most_rows(rows: FloatArray) -> int:
    """How many rows are looked at."""
    return max(_LEAST, min(_SAMPLE, _NUMBERS // max(rows.shape[1], 1)))
