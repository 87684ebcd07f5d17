"""Loaders of the real data sets that have one target."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias, overload

from sklearn.utils import Bunch

from fenchel._typing import FloatArray
from fenchel._validation import BOOLEAN, shown
from fenchel.datasets._registry import registry
from fenchel.datasets._tables import read_table, to_frame


class DatasetInfo(NamedTuple):
    """What :func:`list_datasets` says of one data set.

    Attributes
    ----------
    name : str
        The name that :func:`load` takes.
    n_samples, n_features : int
        Numbers of rows and of features.
    target : str
        Name of the target.
    source : str
        Where the data were published.
    bundled : bool
        Whether the data come with the package. The others are read from ``$FENCHEL_DATA`` or
        the cache, or downloaded.

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
    """Data sets that :func:`load` knows, in alphabetical order.

    Returns
    -------
    list of DatasetInfo
        Name, size, target, source, and whether the data come with the package.

    See Also
    --------
    load : Read one of them.
    load_dti : Curves along two tracts of the brain, which have a loader of their own.

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
    """Read a data set by name.

    Parameters
    ----------
    name : str
        One of the names of :func:`list_datasets`.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a bunch.
    as_frame : bool, default=False
        Give pandas objects. Categorical columns then have their labels as values.

    Returns
    -------
    Bunch or (data, target)
        With the attributes

        - ``data``: array of shape (n_samples, n_features), or DataFrame;
        - ``target``: array of shape (n_samples,), or Series;
        - ``frame``: DataFrame with the target as last column, or None without ``as_frame``;
        - ``feature_names`` and ``target_name``;
        - ``factor_codes``: for each categorical column, its labels in the order of their codes;
        - ``source``, a line, and ``DESCR``, the full description.

    Raises
    ------
    ValueError
        If the name is unknown.
    FileNotFoundError
        If the data set is not bundled and no place holds it. The message names the file and
        its checksum, and says how to provide it.
    OSError
        If a file has the wrong checksum, wherever it was found, or a download fails.

    Notes
    -----
    Data sets that are not bundled are looked for, in this order, in the folder
    ``$FENCHEL_DATA``, in the cache (``$XDG_CACHE_HOME/fenchel``, or ``~/.cache/fenchel``), and
    below the base address ``$FENCHEL_DATA_URL``, from which they are copied to the cache.

    References
    ----------
    The collection is that of Takeuchi, I., Le, Q. V., Sears, T. D. and Smola, A. J. (2006).
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
    """Read food expenditure and income of 235 Belgian households (bundled).

    The spread of the expenditure grows with income, which makes these the standard example of
    quantile regression.

    Parameters
    ----------
    return_X_y, as_frame : bool, default=False
        As in :func:`load`, whose results these are.

    Returns
    -------
    Bunch or (data, target)

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
    """Read 133 head accelerations in a simulated motorcycle accident (bundled).

    A curve with a flat start, a steep dip, and noise that changes along it.

    Parameters
    ----------
    return_X_y, as_frame : bool, default=False
        As in :func:`load`, whose results these are.

    Returns
    -------
    Bunch or (data, target)

    Examples
    --------
    >>> from fenchel.datasets import load_mcycle
    >>> load_mcycle().data.shape
    (133, 1)
    """
    return load("mcycle", return_X_y=return_X_y, as_frame=as_frame)
