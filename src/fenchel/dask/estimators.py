"""Estimators that are fitted to Dask collections."""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from fenchel._parameters import parameters
from fenchel._typing import FloatArray
from fenchel._validation import NONE, Having, declared
from fenchel.dask._cluster import part_of_dask
from fenchel.dask._collections import OnWorkers, is_collection, lazily
from fenchel.regression import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.regression.elsewhere import Source, check_elsewhere

_OF_ROWS = (
    "_sample",
    "support_",
    "dual_coef_",
    "_kept",
    "_last",
    "_train",
    "_train_weight",
    "_idle",
)


@parameters
class OnCluster:
    """Mixin that fits an estimator of this library to Dask collections.

    The parameters are those of the estimator, and ``client``.
    """

    constraints = declared(client=NONE | Having("a Client of Dask", ("submit", "gather")))
    local: ClassVar[Any]
    """The estimator without a cluster."""
    _: KW_ONLY
    client: Any = None
    _takes_sparse = False

    @property
    def client_(self) -> Any:
        """The client as given, or the current client of Dask."""
        if self.client is not None:
            return self.client
        distributed = part_of_dask("distributed")
        try:
            return distributed.default_client()
        except ValueError as error:
            raise ValueError(
                "client must be a Client of Dask where there is no default one: "
                "dask.distributed.Client() makes one, with workers on this machine"
            ) from error

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: None = None) -> Self:
        """Fit all outputs at once, with the features of all rows on the workers.

        Parameters
        ----------
        X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)
            In chunks of rows, whose lengths may be unknown.
        y : dask.array.Array, or Series or DataFrame, of shape (n_samples,) or (n, n_outputs)
            Targets, in the same chunks.
        sample_weight : dask.array.Array or Series of shape (n_samples,), optional
            Non-negative weights, in the same chunks.
        groups : None
            Not supported: groups are for rows in memory.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For parameters or data that are not allowed; the message says which.
        RuntimeError
            If there is no worker, or none for a minute.
        """
        return super().fit(X, y, sample_weight, groups)  # type: ignore[misc]  # of a mixin

    def elsewhere(self, X: Any, y: Any, sample_weight: Any = None) -> Source:
        """Return the rows of collections as they are on the workers."""
        if isinstance(X, Source):
            return X
        model: Any = self
        check_elsewhere(model, "a collection of Dask")
        data = OnWorkers.read(self.client_, X, y, sample_weight, model.random_state)
        if data.targets.shape[1] > 1 and hasattr(model, "levels"):
            raise ValueError(
                f"y must have one column for levels on a cluster, got {data.targets.shape[1]}; "
                "fit a model for each of them"
            )
        return data

    def predict(self, X: Any) -> Any:
        """Predict; lazily for a Dask collection.

        Parameters
        ----------
        X : Dask array or data frame, or as in the estimator without a cluster
            Rows.

        Returns
        -------
        Dask array for a Dask collection, else ndarray
            Predictions, as by the estimator without a cluster.
        """
        if not is_collection(X):
            return super().predict(X)  # type: ignore[misc]  # of a mixin
        fitted = self._to_workers()
        n_outputs = len(fitted.offset_)
        flat = n_outputs == 1 and fitted._flat
        values = partial(_predicted, fitted)
        return lazily(X, values, None if flat else n_outputs, fitted.n_features_in_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the ``score`` of the estimator; workers predict and the client scores."""
        if not is_collection(X):
            return super().score(X, y, sample_weight)  # type: ignore[misc]  # of a mixin
        fitted = self._to_workers()
        values, y, sample_weight = self._computed(_outputs(fitted, X), y, sample_weight)
        fitted._decision = lambda _: np.asarray(values)
        return float(fitted.score(None, y, sample_weight))

    def _decision(self, X: Any) -> FloatArray:
        """All outputs (n, p) as of the estimator; those of a collection are sent by workers."""
        if not is_collection(X):
            return super()._decision(X)  # type: ignore[misc]  # of a mixin
        return np.asarray(self._computed(_outputs(self._to_workers(), X))[0])

    def _computed(self, *values: Any) -> Any:
        """Collections as arrays: by the client as given, as long as it is not closed."""
        running = getattr(self.client, "status", "") == "running"
        scheduler = {"scheduler": self.client} if running else {}
        return part_of_dask("dask").compute(*values, **scheduler)

    def to_local(self) -> Any:
        """Return the fitted estimator without its cluster, with all fitted attributes."""
        check_is_fitted(self)
        found = object.__new__(self.local)
        vars(found).update({name: value for name, value in vars(self).items() if name != "client"})
        return found

    def _to_workers(self) -> Any:
        """Return what predictions need, without arrays of the length of the rows."""
        found = self.to_local()
        for name in _OF_ROWS:
            vars(found).pop(name, None)
        return found

    def __sklearn_clone__(self) -> Any:
        """Return an unfitted copy with the same client."""
        model: Any = self
        given = model.get_params(deep=False)
        client = given.pop("client")
        copied = {name: clone(value, safe=False) for name, value in given.items()}
        kind: Any = type(self)
        return kind(**copied, client=client)

    def __getstate__(self) -> Any:
        """State without the client, which is a connection of this process."""
        state: Any = super().__getstate__()
        return {**state, "client": None}


def _predicted(fitted: Any, X: Any) -> FloatArray:
    return np.asarray(fitted.predict(X))


def _outputs(fitted: Any, X: Any) -> Any:
    """All outputs (n, p) of rows as a collection, not computed yet."""
    return lazily(X, partial(_decided, fitted), len(fitted.offset_), fitted.n_features_in_)


def _decided(fitted: Any, X: Any) -> FloatArray:
    return np.asarray(fitted._decision(X))


@parameters
class DaskQuantileRegressor(OnCluster, QuantileRegressor):
    """:class:`fenchel.QuantileRegressor` for Dask collections.

    Parameters
    ----------
    client : distributed.Client, optional
        The cluster; by default the current client of Dask.
    others
        As in :class:`fenchel.QuantileRegressor`.
    """

    local = QuantileRegressor


@parameters
class DaskExpectileRegressor(OnCluster, ExpectileRegressor):
    """:class:`fenchel.ExpectileRegressor` for Dask collections.

    Parameters
    ----------
    client : distributed.Client, optional
        The cluster; by default the current client of Dask.
    others
        As in :class:`fenchel.ExpectileRegressor`.
    """

    local = ExpectileRegressor


@parameters
class DaskSVR(OnCluster, SVR):
    """:class:`fenchel.SVR` for Dask collections.

    Parameters
    ----------
    client : distributed.Client, optional
        The cluster; by default the current client of Dask.
    others
        As in :class:`fenchel.SVR`.
    """

    local = SVR


@parameters
class DaskKernelRidge(OnCluster, KernelRidge):
    """:class:`fenchel.KernelRidge` for Dask collections.

    It is solved by Newton's method and has no leave-one-out residuals.

    Parameters
    ----------
    client : distributed.Client, optional
        The cluster; by default the current client of Dask.
    others
        As in :class:`fenchel.KernelRidge`.
    """

    local = KernelRidge
