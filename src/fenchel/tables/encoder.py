"""Column-wise encoding of data frames as arrays, with scikit-learn's and skrub's encoders."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.utils.validation import check_is_fitted

from fenchel._bases import BaseEstimator, TransformerMixin
from fenchel._threads import without_warnings
from fenchel._typing import AnyArray, ArrayLike, FloatArray
from fenchel._validation import COUNT, CheckedParameters, declared, shown
from fenchel.files import encoded, is_table, sample_frame
from fenchel.tables.describing import Notice, described, label_of, notices_of
from fenchel.tables.parts import (
    CATEGORIES,
    CATEGORY,
    CYCLES,
    FLAGS,
    NUMBERED,
    NUMBERS,
    TEXTS,
    Part,
    key,
)

_SAMPLE_ROWS = 2**16


def _in_files(X: Any) -> bool:
    """Whether X is a table in files; other strings are not."""
    return is_table(X) and not (isinstance(X, str) and not Path(X).suffix and not Path(X).exists())


class TableEncoder(CheckedParameters, TransformerMixin, BaseEstimator):
    """Encode a data frame with text, dates, booleans and missing values as numbers.

    Each column is encoded by its content in the rows of the fit:

    ==============  =========================================================================
    numbers         unchanged, decimals as floats; missing values become the median, with an
                    indicator column of 0 and 1
    true and false  1 and 0; missing values become the more frequent one, with an indicator column
    dates           days since the first date of the fit; sine and cosine of month, weekday
                    and hour, if these vary, without the weekday if all dates are the first of a
                    month; missing values become the median day, with an indicator column
    categorical     text with at most ``max_categories`` values: one-hot encoding, including
                    missing values if there are any; unknown values have 0 in all columns
    text            with more values: ``n_components`` columns computed from letter n-grams. If
                    rows with the same text are equal in all columns, and each text occurs twice
                    or more on average, another column numbers the texts
    left out        columns that are empty or constant, and text without blanks that is
                    different in every one of more than 10 rows
    ==============  =========================================================================

    Empty strings are missing values. Text that is a date in all rows, in one format with a month
    and a year of four digits, is read as dates. If days and months could be exchanged in all of
    them, the month comes first in 01/02/2020, and the day in 01.02.2020. Dates with a time zone
    are converted to UTC; months, weekdays and hours are those of the clocks in the zone of the
    column of the fit.

    A table of numbers without missing values is passed on unchanged, bit for bit, including
    constant columns. Categories given as numbers are read as numbers: convert them to text or to
    the dtype ``category`` if their order has no meaning.

    Parameters
    ----------
    max_categories : int, default=30
        Maximum number of text values that are one-hot encoded.
    n_components : int, default=10
        Number of columns for text with more values.

    Attributes
    ----------
    description_ : dict of str to str
        One line for each column of the table that says how it was encoded.
    sources_ : ndarray of str of shape (n_features_out,)
        For each output column, the name of the column of the table.
    groups_ : ndarray of int of shape (n_features_out,)
        Output columns of the same text column have the same number >= 0; all others have -1.
    kinds_ : dict of str to str
        The columns that are used, with ``"number"``, ``"flag"``, ``"date"``, ``"category"`` or
        ``"text"`` for each; the other columns were left out.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of all columns of the table.

    Raises
    ------
    ValueError
        If a column holds numbers except for a few words, or dates except for a few, or cells of
        several kinds; if it has a type that is none of these; if no column is left. In
        ``transform``, if a column that is used is missing, or has cells of another kind.
    ImportError
        If pandas is not installed, or skrub is not and there are dates or texts of many values.

    See Also
    --------
    fenchel.QuantileRegressor : An estimator that may follow in a pipeline.

    Notes
    -----
    Neither targets nor weights are used, so rows may be encoded once and then be split into folds.
    Medians and values of a column are those of the rows given to ``fit``.

    Text that is a number with a unit in nearly all rows, such as ``"5 EUR"``, and dates in
    several formats are read as text, with a warning from ``fit``.

    References
    ----------
    Uses the encoders ``SimpleImputer`` and ``OneHotEncoder`` of scikit-learn, ``ToDatetime``,
    ``DatetimeEncoder`` and ``StringEncoder`` of skrub.

    Examples
    --------
    >>> import pandas as pd
    >>> from fenchel.tables import TableEncoder
    >>> X = pd.DataFrame({"area": [50.0, None, 90.0], "town": ["Bonn", "Trier", "Bonn"]})
    >>> encoder = TableEncoder().set_output(transform="pandas")
    >>> encoder.fit_transform(X)
       area  area=missing  town=Bonn  town=Trier
    0  50.0           0.0        1.0         0.0
    1  70.0           1.0        0.0         1.0
    2  90.0           0.0        1.0         0.0
    >>> encoder.groups_
    array([-1, -1,  0,  0])
    >>> print(encoder.description_["area"])
    number; 1 missing value filled with the median 70 and marked in another column
    """

    constraints = declared(max_categories=COUNT, n_components=COUNT)

    def __init__(self, max_categories: int = 30, n_components: int = 10) -> None:
        self.max_categories = max_categories
        self.n_components = n_components

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Determine the content of each column.

        Parameters
        ----------
        X : DataFrame of pandas or Polars of shape (n_samples, n_features), or a table in files
            The table. For a Parquet file, a folder of them, or a table or data set of Arrow, at
            most 65 536 rows are used, one of each run of as many rows, drawn at random.
        y : str, optional
            Name of a column that is left out of a table in files; otherwise ignored.

        Returns
        -------
        TableEncoder
            The encoder itself.
        """
        self.check_parameters()
        reading = _reading()
        some, label = sample_frame(X, y, _SAMPLE_ROWS) if _in_files(X) else (X, "X")
        frame = reading.frame_of(some)
        kinds = reading.kinds_of(frame, self.max_categories, label)
        for doubt in kinds.doubts:
            warnings.warn(doubt, UserWarning, stacklevel=2)
        parts = reading.parts_of(frame, kinds.read, kinds.dates, label)
        table = reading.table_of(parts)
        encoders = [*self._encoders(parts), *_numbers_of_words(parts, table)]
        columns = ColumnTransformer(encoders, sparse_threshold=0.0)
        columns.set_output(transform="default")
        with without_warnings(UserWarning):  # of words in which there are few letters
            columns.fit(table)
        made = list(_made(columns, parts))
        self.columns_, self.dates_, self.kinds_ = columns, kinds.dates, kinds.read
        self.feature_names_in_ = np.array(list(frame.columns), dtype=object)
        self.n_features_in_ = frame.shape[1]
        self.names_out_ = _different([name for _, name, _ in made])
        self.sources_ = np.array([source for source, _, _ in made], dtype=object)
        self.groups_ = np.array([group for _, _, group in made], dtype=np.intp)
        told = described(columns, parts, kinds)
        self.description_ = {name: told[name] for name in frame.columns}
        return self

    def _encoders(self, parts: list[Part]) -> list[tuple[str, Any, Any]]:
        """Return the encoder of each block, with the parts that it is given."""
        blocks = {
            NUMBERS: SimpleImputer(strategy="median", add_indicator=True),
            FLAGS: SimpleImputer(strategy="most_frequent", add_indicator=True),
            CYCLES: SimpleImputer(strategy="constant", fill_value=0.0),
            CATEGORIES: OneHotEncoder(handle_unknown="ignore", sparse_output=False),
        }
        found: list[tuple[str, Any, Any]] = []
        for block, encoder in blocks.items():
            of_block = [key(k) for k, part in enumerate(parts) if part.block == block]
            found += [(str(block), encoder, of_block)] * bool(of_block)
        for k, part in enumerate(parts):
            if part.block == TEXTS:
                skrub = _reading().dates.needed_skrub()
                encoder = skrub.StringEncoder(self.n_components, random_state=0)
                found.append((key(k), encoder, key(k)))
        return found

    def transform(self, X: ArrayLike) -> FloatArray:
        """Encode rows as an array.

        Parameters
        ----------
        X : DataFrame of pandas or Polars of shape (n_samples, n_features), or a table in files
            A table with the columns that are used, in any order, and possibly others.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            The rows as numbers, in Fortran order. For a table in files it is a table as
            estimators take it, which is encoded while it is read.

        Raises
        ------
        ValueError
            If a column is missing or has cells of another kind; for a table in files, if the
            output was set to data frames.
        """
        check_is_fitted(self)
        if _in_files(X):
            _check_output(self)
            table: FloatArray = encoded(
                X, list(self.names_out_), list(self.kinds_), self.transform
            )
            return table
        reading = _reading()
        parts = _parts(self, X, "X")
        values = self.columns_.transform(reading.table_of(parts))
        return np.asfortranarray(values, dtype=np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Names of the output columns, such as ``area`` and ``town=Bonn``.

        Parameters
        ----------
        input_features : ignored
            Present for pipelines.

        Returns
        -------
        ndarray of str of shape (n_features_out,)
            The names.
        """
        check_is_fitted(self)
        return np.array(self.names_out_, dtype=object)

    def notices(self, X: ArrayLike, name: str = "X") -> list[str]:
        """Return notes on rows that are going to be transformed.

        Parameters
        ----------
        X : DataFrame of pandas or Polars of shape (n_samples, n_features)
            The rows.
        name : str, default="X"
            Name of the table in messages.

        Returns
        -------
        list of str
            A sentence for each column with text that the fit has not seen, and one for missing
            values.

        Raises
        ------
        ValueError
            As :meth:`transform`, with this name of the table.
        """
        return [str(notice) for notice in noticed(self, X, name)]


def noticed(encoder: TableEncoder, X: Any, name: str) -> list[Notice]:
    """The notes of :meth:`TableEncoder.notices`, before they are sentences."""
    check_is_fitted(encoder)
    return notices_of(encoder.columns_, _parts(encoder, X, name))


def _check_output(encoder: TableEncoder) -> None:
    """Refuse an output of data frames for a table that is not in memory."""
    own = getattr(encoder, "_sklearn_output_config", {})  # kept by set_output
    output = own.get("transform", get_config()["transform_output"])
    if output != "default":
        raise ValueError(
            "the output of TableEncoder must be the default for a table in files, which is "
            f'encoded while it is read, got {shown(output)}: set_output(transform="default")'
        )


def _parts(encoder: TableEncoder, X: Any, name: str) -> list[Part]:
    """The parts of the columns of a table that the fitted encoders take."""
    reading = _reading()
    known: dict[str, list[str]] = {}
    for column, source in zip(encoder.names_out_, encoder.sources_, strict=True):
        if encoder.kinds_[source] == CATEGORY:
            known.setdefault(source, []).append(column[len(source) + 1 :])
    frame = reading.frame_of(X)
    found: list[Part] = reading.parts_of(frame, encoder.kinds_, encoder.dates_, name, known)
    return found


STORED_TYPES: tuple[str | type, ...] = (
    TableEncoder,
    np.dtype,
    "skrub._string_encoder.StringEncoder",
    "skrub._to_str.ToStr",
)
"""Types that files of fitted encoders may hold, besides scikit-learn's estimators."""


def table_encoder(max_categories: int = 30, n_components: int = 10) -> TableEncoder:
    """Make a :class:`TableEncoder`, for a pipeline.

    Parameters
    ----------
    max_categories : int, default=30
        Maximum number of text values that are one-hot encoded.
    n_components : int, default=10
        Number of columns for text with more values.

    Returns
    -------
    TableEncoder
        Unfitted.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.tables import table_encoder
    >>> X = pd.DataFrame({"area": [50.0, None, 90.0, 70.0], "town": list("BTBT")})
    >>> model = make_pipeline(table_encoder(), QuantileRegressor([0.5])).fit(X, [1, 2, 3, 4])
    >>> model[0].get_feature_names_out().tolist()
    ['area', 'area=missing', 'town=B', 'town=T']
    """
    return TableEncoder(max_categories, n_components)


def _reading() -> ModuleType:
    """Return the module that reads data frames, which needs pandas."""
    try:
        from fenchel.tables import reading  # noqa: PLC0415  (an optional dependency)
    except ImportError as error:
        raise ImportError("tables need pandas: pip install 'fenchel[tables]'") from error
    return reading


def _numbers_of_words(parts: list[Part], table: Any) -> list[tuple[str, Any, Any]]:
    """Return the encoder that numbers the first text column that identifies rows, if there is one.

    Without it, learning cannot distinguish columns computed from letters from measurements of
    units that appear several times, whose rows are held out together.
    """
    n_different = int((~table.duplicated()).sum())
    for k, part in enumerate(parts):
        if part.block == TEXTS and len(set(part.values.tolist())) == n_different:
            far = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-n_different)
            return [(NUMBERED, far, [key(k)])] * (2 * n_different <= len(table))
    return []


def _made(columns: ColumnTransformer, parts: list[Part]) -> Iterator[tuple[str, str, int]]:
    """Source, name and group of each output column, block by block."""
    of_key = {key(k): part for k, part in enumerate(parts)}
    group, of_words = 0, {}
    for block, encoder, keys in columns.transformers_:
        if isinstance(keys, str):
            part = of_key[keys]
            names = (f"{part.name}.{j}" for j in range(encoder.n_components_))
            yield from ((part.source, name, group) for name in names)
            of_words[keys] = group
            group += 1
            continue
        if block == NUMBERED:
            part = of_key[keys[0]]
            yield part.source, f"{part.name}.number", of_words[keys[0]]
            continue
        read = [of_key[each] for each in keys]
        if read[0].block == CATEGORIES:
            for part, labels in zip(read, encoder.categories_, strict=True):
                names = (f"{part.name}={label_of(label)}" for label in labels)
                yield from ((part.source, name, group) for name in names)
                group += 1
            continue
        yield from ((part.source, part.name, -1) for part in read)
        if encoder.add_indicator:
            marked = encoder.indicator_.features_
            sources = (read[j].source for j in marked)
            yield from ((source, f"{source}={label_of(None)}", -1) for source in sources)


def _different(names: list[str]) -> list[str]:
    """The names, with an underscore appended to duplicates."""
    found: dict[str, None] = {}
    for name in names:
        new = name
        while new in found:
            new += "_"
        found[new] = None
    return list(found)
