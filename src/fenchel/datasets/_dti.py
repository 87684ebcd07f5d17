"""The DTI data set: curves along two tracts of the brain."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch

from fenchel._validation import BOOLEAN, NONE, Number
from fenchel.datasets._functional import fill_gaps
from fenchel.datasets._store import Resource, fetch
from fenchel.datasets._tables import read_table, to_frame

_RESOURCE = Resource(
    "dti/dti.csv", "286976e2f36b0039f7252648f03173ded89878cfa47f0af4698a455a566fb446"
)
_N_COVARIATES, _N_CCA = 7, 93
_SEXES = ["female", "male"]
_SOURCE = "R package refund, DTI"
_DESCRIPTION = f"""\
DTI: fractional anisotropy along two tracts of the brain
=========================================================

382 scans of 142 people, healthy (``case`` 0) or with multiple sclerosis (``case`` 1), by
diffusion tensor imaging. Missing values are NaN.

- ``covariates``: ``ID`` of the person, number of the ``visit``, ``visit.time`` in days since the
  first visit, ``Nscans`` of the person, ``case``, ``sex`` (coded 0 = female, 1 = male), and
  ``pasat``, the score of a test of attention (of people with ``case`` 1 only).
- ``cca``: 93 points along the corpus callosum.
- ``rcst``: 55 points along the right corticospinal tract.

Source: {_SOURCE}. The MRI/DTI data were collected at Johns Hopkins University and the
Kennedy-Krieger Institute.

- Goldsmith, J., Bobb, J., Crainiceanu, C., Caffo, B. and Reich, D. (2011). Penalized functional
  regression. Journal of Computational and Graphical Statistics 20, 830-851.
"""


def load_dti(
    *,
    case: int | None = None,
    visit: int | None = None,
    interpolate: bool = False,
    as_frame: bool = False,
) -> Bunch:
    """Load the DTI data set: fractional anisotropy along two tracts of the brain.

    The data are not bundled. The file ``dti/dti.csv`` is searched for as described in
    :func:`load`.

    Parameters
    ----------
    case : {0, 1} or None, default=None
        Load only scans of healthy people (0) or of people with multiple sclerosis (1). None loads
        both.
    visit : int or None, default=None
        Load only scans of this visit, counted from 1. None loads all.
    interpolate : bool, default=False
        Whether to fill gaps of the curves by :func:`fill_gaps`. Missing covariates remain missing.
    as_frame : bool, default=False
        Whether to return DataFrames. The column ``sex`` then contains labels.

    Returns
    -------
    Bunch
        Dictionary-like object with the attributes

        - ``covariates``: array of shape (n_samples, 7), named by ``covariate_names``;
        - ``cca``: array of shape (n_samples, 93), the curves along the corpus callosum;
        - ``rcst``: array of shape (n_samples, 55), the curves along the right corticospinal tract;
        - ``factor_codes``: the labels of ``sex`` in the order of their codes;
        - ``source``: a one-line source, and ``DESCR``: the full description.

        Missing values are NaN. There are 382 scans in total. With ``case=1, visit=1`` there are
        100, the first scans of 100 patients, from which Lambert et al. (2022, Table 2) predict
        ``rcst`` from ``cca``. In a third of these ``rcst`` the first points are missing.

    Raises
    ------
    ValueError
        If there is no scan with this case and visit.
    FileNotFoundError, OSError
        As in :func:`load`.

    Examples
    --------
    >>> from fenchel.datasets import load_dti
    >>> dti = load_dti(case=1, visit=1, interpolate=True)  # doctest: +SKIP
    >>> dti.cca.shape, dti.rcst.shape  # doctest: +SKIP
    ((100, 93), (100, 55))
    """
    BOOLEAN(interpolate, "interpolate")
    BOOLEAN(as_frame, "as_frame")
    (NONE | Number(0, 1, integer=True))(case, "case")
    (NONE | Number(1, 8, integer=True))(visit, "visit")
    codes = {sex: float(code) for code, sex in enumerate(_SEXES)} | {"": np.nan}
    names, values = read_table(fetch(_RESOURCE), codes)
    keep = np.ones(values.shape[0], dtype=bool)
    for name, wanted in (("case", case), ("visit", visit)):
        if wanted is not None:
            keep &= values[:, names.index(name)] == wanted
    if not keep.any():
        raise ValueError(f"no scan of the study has case={case!r} and visit={visit!r}.")
    values = values[keep]
    parts = {
        "covariates": slice(0, _N_COVARIATES),
        "cca": slice(_N_COVARIATES, _N_COVARIATES + _N_CCA),
        "rcst": slice(_N_COVARIATES + _N_CCA, None),
    }
    if interpolate:
        for tract in ("cca", "rcst"):
            values[:, parts[tract]] = fill_gaps(values[:, parts[tract]])
    factor_codes = {"sex": list(_SEXES)}
    return Bunch(
        **{
            part: to_frame(values[:, columns], names[columns], factor_codes)
            if as_frame
            else np.ascontiguousarray(values[:, columns])
            for part, columns in parts.items()
        },
        covariate_names=names[:_N_COVARIATES],
        factor_codes=factor_codes,
        source=_SOURCE,
        DESCR=_DESCRIPTION,
    )
