"""Saving estimators to archives and loading them."""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import sys
import warnings
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import sklearn
from sklearn import model_selection as splitters
from sklearn.base import BaseEstimator
from sklearn.gaussian_process import kernels as gaussian_process_kernels

from fenchel import (
    dask,
    features,
    functional,
    kernels,
    losses,
    model_selection,
    online,
    positive,
    regression,
    solvers,
)
from fenchel._validation import Having, That, shown
from fenchel.certificate import Certificate
from fenchel.learning import Learned, Learning
from fenchel.model_selection.conformal import STORED_TYPES as CONFORMAL_TYPES
from fenchel.persistence._archive import check_directory, check_parts
from fenchel.persistence._writing import write_whole
from fenchel.tables.encoder import STORED_TYPES

_RECORD = "fenchel.json"
_FORMAT = 1
_NEEDS = "fenchel.{} needs skops: pip install 'fenchel[io]'"
_ESTIMATOR = Having("an estimator", ("fit", "get_params"))
_PLACE = That("a str or a path", lambda value: isinstance(value, (str, os.PathLike)))
_TYPES = That(
    "types, functions and their names, in a list",
    lambda value: (
        isinstance(value, Collection)
        and not isinstance(value, str)
        and all(isinstance(t, str) or hasattr(t, "__name__") for t in value)
    ),
)


def save(
    model: Any, path: str | os.PathLike[str], *, metadata: Mapping[str, Any] | None = None
) -> Path:
    """Write a model to a file, atomically.

    Parameters
    ----------
    model : estimator
        An estimator of fenchel, fitted or not, by itself or inside scikit-learn's pipelines. One
        of :mod:`fenchel.dask` is saved without its client.
    path : str or path
        Path of the file, usually with the suffix ``.skops``. The folder must exist. An existing
        file is replaced once the new one is complete, and keeps its mode; a link is followed.
    metadata : mapping, optional
        Anything that JSON can hold, to be read by :func:`load_metadata`; a key ``"versions"`` is
        replaced by the versions that save.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ImportError
        If skops is not installed.
    TypeError
        If the model is not an estimator or holds something that cannot be stored, such as a
        lambda as a kernel, or if JSON cannot hold the metadata.
    OSError
        If the file cannot be written; an existing file is unchanged.

    See Also
    --------
    load : Read a model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import fenchel
    >>> from fenchel.datasets import load_engel
    >>> X, y = load_engel(return_X_y=True)
    >>> model = fenchel.QuantileRegressor([0.1, 0.9]).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = fenchel.save(model, Path(folder) / "model.skops")
    ...     same = fenchel.load(path)
    >>> bool((same.predict(X) == model.predict(X)).all())
    True
    """
    skops_io = _skops("save")
    _ESTIMATOR(model, "model")
    _PLACE(path, "path")
    record = {"format": _FORMAT, "versions": _versions(), "metadata": _metadata(metadata)}
    for function in _functions(model, set()):
        _check_function(function)
    try:
        content = skops_io.dumps(model)
    except Exception as error:  # skops and the objects inside may raise anything
        raise TypeError(f"{type(model).__name__} cannot be saved: {_one_line(error)}") from error
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(_RECORD, json.dumps(record, indent=2))
    return write_whole(path, buffer.getvalue())


def load(path: str | os.PathLike[str], *, trusted: Iterable[str | type] = ()) -> Any:
    """Read a model that :func:`save` wrote.

    Only types of fenchel, scikit-learn and NumPy, and skrub's for text, are built. A file that
    names any other type is refused before anything in it is built, and so is one that claims to
    hold more than it has bytes.

    Parameters
    ----------
    path : str or path
        The file.
    trusted : iterable of str or type, optional
        Further types and functions that may be built, for instance a user-defined loss.

    Returns
    -------
    estimator
        The model. Its predictions, certificate and parameters are exactly those of the saved one.

    Raises
    ------
    ImportError
        If skops is not installed.
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file was not written by :func:`save`, is damaged, or holds unknown types.

    Warns
    -----
    UserWarning
        If the file was written by another version of fenchel (in the first two numbers).

    See Also
    --------
    save : Write a model, with an example.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import fenchel
    >>> from fenchel.datasets import load_engel
    >>> X, y = load_engel(return_X_y=True)
    >>> model = fenchel.KernelRidge(learn=False).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     path = fenchel.save(model, Path(folder, "model.fenchel"))
    ...     same = fenchel.load(path)
    >>> bool((same.predict(X) == model.predict(X)).all())
    True
    """
    skops_io = _skops("load")
    path = Path(_PLACE(path, "path"))
    trusted = _TYPES(list(trusted) if isinstance(trusted, Iterator) else trusted, "trusted")
    content = _content(path)
    record = _record(path, content)
    known = [*trusted_types(), *map(_name, trusted)]
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_parts(archive)
        unknown = sorted(set(skops_io.get_untrusted_types(data=content)) - set(known))
    except Exception as error:  # a damaged file may fail anywhere
        raise ValueError(f"{path} is damaged: {_one_line(error)}") from error
    if unknown:
        raise ValueError(
            f"{path} holds types that fenchel does not know ({', '.join(unknown)}): if you know "
            "where the file comes from, name them in trusted=[...]"
        )
    _warn_of_version(path, record["versions"])
    try:
        return skops_io.loads(content, trusted=known)
    except Exception as error:
        raise ValueError(f"{path} cannot be read: {_one_line(error)}") from error


def load_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the ``metadata`` given to :func:`save`, and the versions that wrote the file.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    dict
        The metadata, and the versions of fenchel, NumPy and scikit-learn as ``"versions"``.

    Raises
    ------
    FileNotFoundError, ValueError
        As :func:`load`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import fenchel
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.persistence import load_metadata
    >>> model = fenchel.KernelRidge(learn=False).fit(*load_engel(return_X_y=True))
    >>> with TemporaryDirectory() as folder:
    ...     path = fenchel.save(model, Path(folder, "model.fenchel"), metadata={"unit": "francs"})
    ...     metadata = load_metadata(path)
    >>> metadata["unit"], sorted(metadata["versions"])
    ('francs', ['fenchel', 'numpy', 'scikit-learn'])
    """
    path = Path(_PLACE(path, "path"))
    record = _record(path, _content(path))
    return {**record["metadata"], "versions": record["versions"]}


@cache
def trusted_types() -> tuple[str, ...]:
    """Names of the types in models of fenchel, besides those known to skops.

    These are the types of fenchel, scikit-learn's kernels, the splitters that ``cv`` may be, and
    the types by which skrub encodes text.
    """
    own: list[str | type] = [
        Certificate,
        Learned,
        Learning,
        kernels.DistanceQuantile,
        kernels.SparsePoints,
        functional.Sparsity,
        positive.Start,
    ]
    own += [*CONFORMAL_TYPES, *STORED_TYPES]
    package = __name__.partition(".")[0]
    own += [
        t
        for t in vars(solvers).values()
        if isinstance(t, type) and t.__module__.partition(".")[0] == package
    ]
    for module, base in (
        (kernels, kernels.ScalarKernel),
        (kernels, kernels.OperatorKernel),
        (gaussian_process_kernels, gaussian_process_kernels.Kernel),
        (losses, losses.Loss),
        (features, features.FeatureMap),
        *((room, BaseEstimator) for room in (dask, functional, regression, model_selection)),
        *((room, BaseEstimator) for room in (online, positive)),
        (positive, positive.PSDModel),
        (positive, positive.Box),
        (positive, positive.Condition),
        (splitters, splitters.BaseCrossValidator),
        (splitters, splitters.BaseShuffleSplit),
        (splitters, splitters.RepeatedKFold),
        (splitters, splitters.RepeatedStratifiedKFold),
    ):
        own += [t for t in vars(module).values() if isinstance(t, type) and issubclass(t, base)]
    return tuple(sorted({_name(t) for t in own}))


def _skops(function: str) -> Any:
    try:
        return importlib.import_module("skops.io")
    except ImportError as error:
        raise ImportError(_NEEDS.format(function)) from error


def _content(path: Path) -> bytes:
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {path}")
    try:
        return path.read_bytes()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _record(path: Path, content: bytes) -> dict[str, Any]:
    """The member of the archive that says who wrote it."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_directory(archive, len(content))
            record = json.loads(archive.read(_RECORD))
        known = record["format"]
        if not isinstance(record["versions"]["fenchel"], str):
            raise TypeError("its versions are not words")
        if not isinstance(record["metadata"], dict):
            raise TypeError("its metadata are not a table")
    except Exception as error:  # a damaged file may fail anywhere
        raise ValueError(
            f"{path} is not a model that fenchel saved: {_one_line(error)}"
        ) from error
    if known != _FORMAT:
        raise ValueError(
            f"{path} has format {known}, but this version of fenchel reads format {_FORMAT} only"
        )
    return dict(record)


def _versions() -> dict[str, str]:
    own = sys.modules[__name__.partition(".")[0]].__version__
    return {"fenchel": own, "numpy": np.__version__, "scikit-learn": sklearn.__version__}


def _warn_of_version(path: Path, written: Mapping[str, str]) -> None:
    here = _versions()["fenchel"]
    if written["fenchel"].split(".")[:2] != here.split(".")[:2]:
        warnings.warn(
            f"{path} was written by fenchel {written['fenchel']}, and this is {here}: predictions "
            "may differ; fit and save the model again",
            UserWarning,
            stacklevel=3,
        )


def _metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """The metadata as JSON returns them."""
    if not (metadata is None or isinstance(metadata, Mapping)):
        raise TypeError(f"metadata must be a mapping or None, got {shown(metadata)}")
    try:
        found: dict[str, Any] = json.loads(json.dumps(dict(metadata or {})))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            f"metadata must hold what JSON can, and do not: {_one_line(error)}"
        ) from error
    return found


def _name(t: str | type) -> str:
    return t if isinstance(t, str) else f"{t.__module__}.{t.__name__}"


def _one_line(error: Exception) -> str:
    """The message of another library in one sentence."""
    text = " ".join(str(error).split()) or type(error).__name__
    return re.sub(r"\. (?=[A-Z])", "; ", text).rstrip(".")


def _functions(value: Any, seen: set[int]) -> Iterable[FunctionType]:
    """All Python functions that an object holds, at any depth."""
    if id(value) in seen or isinstance(value, (str, bytes, int, float, np.ndarray, type)):
        return
    seen.add(id(value))
    if isinstance(value, FunctionType):
        yield value
        return
    own: Iterable[Any] = value if isinstance(value, (list, tuple, set, frozenset)) else ()
    own = value.values() if isinstance(value, Mapping) else own
    # estimators may leave out of a file what they have, as a client of a cluster
    state = value.__getstate__() if isinstance(value, BaseEstimator) else None
    state = state if isinstance(state, Mapping) else getattr(value, "__dict__", {})
    for part in [*own, *state.values()]:
        yield from _functions(part, seen)


def _check_function(function: FunctionType) -> None:
    """Raise an error for a function that a file cannot refer to by name."""
    module = sys.modules.get(function.__module__)
    if getattr(module, function.__name__, None) is not function:
        raise TypeError(
            f"the model holds the function {function.__qualname__}, which cannot be saved because "
            "it is not defined at the top of a module: define it there with def, or use a kernel "
            "of fenchel.kernels"
        )
