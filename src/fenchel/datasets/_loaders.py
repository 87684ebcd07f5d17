"""Loaders of real data sets with a single target."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias, overload

from sklearn.utils import Bunch

from fenchel._typing import FloatArray
from fenchel._validation import BOOLEAN, shown
from fenchel.datasets._registry import registry
from fenchel.datasets._tables import read_table, to_frame


class DatasetInfo(NamedTuple):
    """Description of a data set, as returned by :func:`list_datasets`.

    Attributes
    ----------
    name : str
        Name of the data set in :func:`load`.
    n_samples, n_features : int
        Numbers of samples and features.
    target : str
        Name of the target.
    source : str
        Publication of the data.
    bundled : bool
        Whether the data are included in the package. Otherwise they are read from
        ``$FENCHEL_DATA`` or the cache, or downloaded.

    Examples
    --------
    >>> from fenchel.datasets import list_datasets
    >>> info = next(info for info in list_datasets() if info.name == "engel")
    >>> info.n_samples, info.target, info.bundled
    (235, 'foodexp', True)
    """

    name: str
    n_samples: int
    n_features: int
    target: str
    source: str
    bundled: bool


def list_datasets() -> list[DatasetInfo]:
    """List the data sets of :func:`load`, in alphabetical order.

    Returns
    -------
    list of DatasetInfo
        Name, size, target and source of each data set, and whether it is bundled.

    See Also
    --------
    load : Load a data set.
    load_dti : Load curves along two tracts of the brain.

    Examples
    --------
    >>> from fenchel.datasets import list_datasets
    >>> [info.name for info in list_datasets() if info.bundled][:4]
    ['birthwt', 'BostonHousing', 'CobarOre', 'cpus']
    """
    return [
        DatasetInfo(e.name, e.n_samples, e.n_features, e.target_name, e.source, e.bundled)
        for e in registry().values()
    ]


_Pair: TypeAlias = tuple[FloatArray, FloatArray]
_Frames: TypeAlias = tuple[Any, Any]  # pandas is imported only when asked for


@overload
def load(name: str, *, return_X_y: Literal[False] = ..., as_frame: bool = ...) -> Bunch: ...
@overload
def load(name: str, *, return_X_y: Literal[True], as_frame: Literal[False] = ...) -> _Pair: ...
@overload
def load(name: str, *, return_X_y: Literal[True], as_frame: Literal[True]) -> _Frames: ...
@overload
def load(name: str, *, return_X_y: bool, as_frame: bool = ...) -> Bunch | _Frames: ...
def load(name: str, *, return_X_y: bool = False, as_frame: bool = False) -> Bunch | _Frames:
    """Load a data set by name.

    Parameters
    ----------
    name : str
        A name from :func:`list_datasets`.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Whether to return pandas objects. Categorical columns then contain labels.

    Returns
    -------
    Bunch or (data, target)
        Dictionary-like object with the attributes

        - ``data``: array of shape (n_samples, n_features), or DataFrame;
        - ``target``: array of shape (n_samples,), or Series;
        - ``frame``: DataFrame with the target as last column; None without ``as_frame``;
        - ``feature_names`` and ``target_name``;
        - ``factor_codes``: labels of each categorical column, in the order of their codes;
        - ``source``: a one-line source, and ``DESCR``: the full description.

    Raises
    ------
    ValueError
        If the name is unknown.
    FileNotFoundError
        If the data set is not bundled and was not found. The message contains the file name, its
        checksum and instructions.
    OSError
        If a file has the wrong checksum, at any of the places, or a download fails.

    Notes
    -----
    Data sets that are not bundled are searched for in this order: in the folder ``$FENCHEL_DATA``;
    in the cache (``$XDG_CACHE_HOME/fenchel``, or ``~/.cache/fenchel``); and below the URL
    ``$FENCHEL_DATA_URL``. Downloaded files are copied to the cache.

    References
    ----------
    The collection follows Takeuchi, I., Le, Q. V., Sears, T. D. and Smola, A. J. (2006).
    Nonparametric quantile estimation. Journal of Machine Learning Research 7, 1231-1264.

    Examples
    --------
    >>> from fenchel.datasets import load
    >>> engel = load("engel")
    >>> engel.data.shape, engel.feature_names, engel.target_name
    ((235, 1), ['income'], 'foodexp')
    >>> X, y = load("crabs", return_X_y=True)
    >>> X.shape, y.shape
    ((200, 6), (200,))
    >>> load("crabs").factor_codes
    {'sp': ['B', 'O'], 'sex': ['F', 'M']}
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, got {shown(name)}.")
    if name not in registry():
        raise ValueError(f"name must be one of {', '.join(registry())}, got {shown(name)}.")
    entry = registry()[name]
    BOOLEAN(return_X_y, "return_X_y")
    BOOLEAN(as_frame, "as_frame")
    names, values = read_table(entry.read())
    if names != list(entry.columns) or values.shape[0] != entry.n_samples:
        raise OSError(f"{entry.file} does not have the columns and rows that its manifest states.")
    features, target, frame = values[:, :-1], values[:, -1], None
    if as_frame:
        frame = to_frame(values, names, entry.categories)
        features, target = frame.iloc[:, :-1], frame.iloc[:, -1]
    if return_X_y:
        return features, target
    return Bunch(
        data=features,
        target=target,
        frame=frame,
        feature_names=entry.feature_names,
        target_name=entry.target_name,
        factor_codes={column: list(labels) for column, labels in entry.categories.items()},
        source=entry.source,
        DESCR=entry.description,
    )


@overload
def load_engel(*, return_X_y: Literal[False] = ..., as_frame: bool = ...) -> Bunch: ...
@overload
def load_engel(*, return_X_y: Literal[True], as_frame: Literal[False] = ...) -> _Pair: ...
@overload
def load_engel(*, return_X_y: Literal[True], as_frame: Literal[True]) -> _Frames: ...
@overload
def load_engel(*, return_X_y: bool, as_frame: bool = ...) -> Bunch | _Frames: ...
def load_engel(*, return_X_y: bool = False, as_frame: bool = False) -> Bunch | _Frames:
    """Load food expenditure and income of 235 Belgian households (bundled).

    The variance of the expenditure increases with income, which makes this the standard example of
    quantile regression.

    Parameters
    ----------
    return_X_y, as_frame : bool, default=False
        As in :func:`load`.

    Returns
    -------
    Bunch or (data, target)
        As in :func:`load`.

    Examples
    --------
    >>> from fenchel.datasets import load_engel
    >>> X, y = load_engel(return_X_y=True)
    >>> X.shape, y.shape
    ((235, 1), (235,))
    """
    return load("engel", return_X_y=return_X_y, as_frame=as_frame)


@overload
def load_mcycle(*, return_X_y: Literal[False] = ..., as_frame: bool = ...) -> Bunch: ...
@overload
def load_mcycle(*, return_X_y: Literal[True], as_frame: Literal[False] = ...) -> _Pair: ...
@overload
def load_mcycle(*, return_X_y: Literal[True], as_frame: Literal[True]) -> _Frames: ...
@overload
def load_mcycle(*, return_X_y: bool, as_frame: bool = ...) -> Bunch | _Frames: ...
def load_mcycle(*, return_X_y: bool = False, as_frame: bool = False) -> Bunch | _Frames:
    """Load 133 head accelerations in a simulated motorcycle accident (bundled).

    The curve has a flat start and a steep dip, and its noise is heteroscedastic.

    Parameters
    ----------
    return_X_y, as_frame : bool, default=False
        As in :func:`load`.

    Returns
    -------
    Bunch or (data, target)
        As in :func:`load`.

    Examples
    --------
    >>> from fenchel.datasets import load_mcycle
    >>> load_mcycle().data.shape
    (133, 1)
    """
    return load("mcycle", return_X_y=return_X_y, as_frame=as_frame)
