"""Files give back exactly what was saved, and nothing unknown."""

from __future__ import annotations

import json
import shutil
import sys
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
import skops.io
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures

import fenchel
from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor, features, kernels
from fenchel.losses import Huber, Loss, Squared
from fenchel.persistence import load_metadata, write_whole
from fenchel.persistence._models import trusted_types

MODELS = {
    "quantile": QuantileRegressor([0.9, 0.1], level_gamma=np.inf, warm_start=True),
    "expectile": ExpectileRegressor((0.2, 0.7), features="nystroem", epsilon=0.05),
    "svr": SVR(kernel=kernels.Matern("median", nu=2.5), random_state=3),
    "svr, huber": SVR(Huber(0.5), kernel="laplacian", features=features.Nystroem(rank=30)),
    "svr, insensitive": SVR(Squared().insensitive(0.1), kernel="polynomial"),
    "ridge": KernelRidge(kernel=kernels.Gaussian(kernels.DistanceQuantile(0.7))),
    "ridge, linear": KernelRidge(kernel="linear"),
    "ridge, powers": KernelRidge(features=features.Explicit(PolynomialFeatures(4))),
    "scikit-learn's kernels": QuantileRegressor(kernel=0.5 * RBF(0.3) + kernels.Linear() ** 2),
    "their product": KernelRidge(kernel=RBF(0.3) * DotProduct(0.1)),
    "fourier": KernelRidge(kernel="gaussian", features=features.RandomFourier(rank=300)),
}


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.uniform(size=(60, 2))
    return X, np.sin(6 * X[:, 0]) + X[:, 1] + 0.2 * random.standard_normal(60)


def quiet(model, X, y):
    """Fit where the truncation of the kernel is no news."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the feature map of rank", UserWarning)
        warnings.filterwarnings("ignore", ".*leave out a part of the kernel", UserWarning)
        return model.fit(X, y)


@pytest.mark.parametrize("name", MODELS)
def test_round_trip_is_exact(name, data, tmp_path):
    X, y = data
    model = quiet(MODELS[name], X, y)
    path = fenchel.save(model, tmp_path / "model.skops")
    same = fenchel.load(path)
    assert type(same) is type(model)
    new = np.random.default_rng(1).uniform(size=(40, 2))
    np.testing.assert_array_equal(same.predict(new), model.predict(new))
    assert same.certificate_ == model.certificate_
    assert same.history_ == model.history_
    assert same.kernel_ == model.kernel_
    np.testing.assert_array_equal(same.dual_coef_, model.dual_coef_)
    np.testing.assert_array_equal(same.support_, model.support_)
    expected = {k: v for k, v in model.get_params().items() if not isinstance(v, Loss)}
    found = same.get_params()
    for key, value in expected.items():
        if not key.startswith("features"):
            assert found[key] == value
            assert type(found[key]) is type(value)
    assert [p.name for p in tmp_path.iterdir()] == ["model.skops"]


@pytest.mark.slow
def test_a_loaded_model_fits_on_from_where_it_was(data, tmp_path):
    X, y = data
    model = QuantileRegressor([0.1, 0.9], warm_start=True).fit(X, y)
    same = fenchel.load(fenchel.save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(
        same.set_params(alpha=1e-4).fit(X, y).predict(X),
        model.set_params(alpha=1e-4).fit(X, y).predict(X),
    )


def test_several_outputs(data, tmp_path):
    X, y = data
    model = SVR(epsilon=0.3, learn=False).fit(X, np.column_stack([y, -y]))
    same = fenchel.load(fenchel.save(model, tmp_path / "m.skops"))
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert same.predict(X).shape == (60, 2)


@pytest.mark.slow
@pytest.mark.parametrize("model", [QuantileRegressor([0.1, 0.9]), KernelRidge(), SVR()])
def test_pipeline_with_categories(model, data, tmp_path):
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame["colour"] = np.where(frame["a"] > 0.5, "red", "blue")
    frame["flag"] = frame["b"] > 0.3
    encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer([("c", encode, ["colour", "flag"]), ("n", "passthrough", ["a"])])
    pipeline = make_pipeline(columns, model).fit(frame, y)
    same = fenchel.load(fenchel.save(pipeline, tmp_path / "p.skops"))
    frame.loc[0, "colour"] = "green"
    np.testing.assert_array_equal(same.predict(frame), pipeline.predict(frame))
    assert list(same.feature_names_in_) == list(frame.columns)
    frame = frame.drop(columns="a")
    with pytest.raises(ValueError, match="a"):
        same.predict(frame)


def test_unfitted(tmp_path):
    model = ExpectileRegressor([0.3], alpha=0.5, kernel=kernels.Laplacian("median"))
    same = fenchel.load(fenchel.save(model, tmp_path / "m.skops"))
    assert same.get_params() == model.get_params()


def test_metadata_and_versions(tmp_path):
    path = fenchel.save(SVR(), tmp_path / "m.skops", metadata={"target": "ÿ", "n": [1, 2]})
    found = load_metadata(path)
    assert found["target"] == "ÿ"
    assert found["n"] == [1, 2]
    assert found["versions"]["fenchel"] == fenchel.__version__
    assert found["versions"]["numpy"] == np.__version__
    assert set(found["versions"]) == {"fenchel", "numpy", "scikit-learn"}


@pytest.mark.parametrize(("written", "warned"), [("99.1.0", True), ("{}.{}.77", False)])
def test_version_warning(written, warned, tmp_path, recwarn, monkeypatch):
    version = written.format(*fenchel.__version__.split(".")[:2])
    with monkeypatch.context() as patch:
        patch.setattr(fenchel, "__version__", version)
        path = fenchel.save(SVR(), tmp_path / "m.skops")
    if warned:
        with pytest.warns(UserWarning, match=r"written by fenchel 99\.1\.0, and this is"):
            fenchel.load(path)
    else:
        fenchel.load(path)
        assert not recwarn.list


# --- what must not be loaded ---------------------------------------------------------------


class OwnLoss(Squared):
    """A loss that fenchel does not know."""


def own_kernel(X, Y):
    return X @ Y.T


def test_unknown_types_are_refused_unless_trusted(tmp_path):
    path = fenchel.save(SVR(OwnLoss()), tmp_path / "m.skops")
    name = f"{OwnLoss.__module__}.OwnLoss"
    with pytest.raises(ValueError, match=r"holds types that fenchel does not know \(.*OwnLoss\)"):
        fenchel.load(path)
    sys.modules.setdefault(OwnLoss.__module__, sys.modules[__name__])
    for trusted in ([name], [OwnLoss]):
        assert type(fenchel.load(path, trusted=trusted).loss) is OwnLoss


def test_functions_are_refused_before_they_are_built(tmp_path, monkeypatch):
    model = KernelRidge(kernel=kernels.Callable(shutil.rmtree))
    path = fenchel.save(model, tmp_path / "m.skops")
    with pytest.raises(ValueError, match=r"\(shutil\.rmtree\)"):
        fenchel.load(path)
    assert fenchel.load(path, trusted=["shutil.rmtree"]).kernel.function is shutil.rmtree


@pytest.mark.parametrize(
    "wrap", [kernels.Callable, lambda f: f, lambda f: 2.0 * kernels.Callable(f)]
)
def test_a_lambda_cannot_be_saved(wrap, tmp_path):
    with pytest.raises(TypeError, match=r"holds the function .*lambda.*top of a module") as caught:
        fenchel.save(
            make_pipeline(KernelRidge(kernel=wrap(lambda X, Y: X @ Y.T))), tmp_path / "m.skops"
        )
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_local_function_is_not_taken_for_its_namesake(tmp_path):
    def own_kernel(X, Y):
        return np.ones((len(X), len(Y)))

    with pytest.raises(TypeError, match="test_a_local_function"):
        fenchel.save(KernelRidge(kernel=own_kernel), tmp_path / "m.skops")


def test_trusted_types_hold_no_functions_and_only_own_classes():
    # a type of numbers, in files the header of an empty array; and what skrub makes of words
    others = {"numpy.dtype", "skrub._string_encoder.StringEncoder", "skrub._to_str.ToStr"}
    assert others < set(trusted_types())
    for name in set(trusted_types()) - others:
        module, _, attribute = name.rpartition(".")
        assert isinstance(getattr(sys.modules[module], attribute), type), name
        known = ("fenchel.", "sklearn.gaussian_process.kernels", "sklearn.model_selection._split")
        assert module.startswith(known), name
    assert "fenchel.kernels.scalar.Matern" in trusted_types()


# --- files that are not models -------------------------------------------------------------


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no model file .*none\.skops"):
        fenchel.load(tmp_path / "none.skops")


def make_text(path):
    path.write_text("a,b\n1,2\n", encoding="utf-8")


def make_empty(path):
    path.write_bytes(b"")


def make_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "b")


def make_other_skops(path):
    skops.io.dump({"a": 1}, path)


def make_wrong_record(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("fenchel.json", json.dumps([1, 2]))


@pytest.mark.parametrize(
    "make", [make_text, make_empty, make_zip, make_other_skops, make_wrong_record]
)
@pytest.mark.parametrize("read", [fenchel.load, load_metadata])
def test_files_that_are_not_models(make, read, tmp_path):
    path = tmp_path / "m.skops"
    make(path)
    with pytest.raises(ValueError, match=r"m\.skops is not a model that fenchel saved"):
        read(path)


def test_newer_format(tmp_path):
    path = tmp_path / "m.skops"
    with zipfile.ZipFile(path, "w") as archive:
        record = {"format": 7, "versions": {"fenchel": "9.0"}, "metadata": {}}
        archive.writestr("fenchel.json", json.dumps(record))
    with pytest.raises(ValueError, match="has format 7"):
        fenchel.load(path)


@pytest.mark.slow
def test_damaged_file(tmp_path, data):
    path = fenchel.save(KernelRidge().fit(*data), tmp_path / "m.skops")
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["schema.json"] = members["schema.json"][:-200]
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match=r"m\.skops is damaged"):
        fenchel.load(path)


def test_without_skops(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    needs = r"fenchel\.save needs skops: pip install 'fenchel\[io\]'"
    with pytest.raises(ImportError, match=needs):
        fenchel.save(SVR(), tmp_path / "m.skops")
    with pytest.raises(ImportError, match=needs.replace("save", "load")):
        fenchel.load(tmp_path / "m.skops")


# --- whole files or none -------------------------------------------------------------------


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_whole(path, b"old")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_saving_replaces(tmp_path):
    path = tmp_path / "m.skops"
    fenchel.save(SVR(alpha=1.0), path)
    fenchel.save(SVR(alpha=2.0), str(path))
    assert fenchel.load(str(path)).alpha == 2.0


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        fenchel.save(SVR(), tmp_path / "none" / "m.skops")


def test_links_are_followed_and_modes_kept(tmp_path):
    path, link = tmp_path / "m.skops", tmp_path / "link.skops"
    path.write_bytes(b"old")
    path.chmod(0o600)
    link.symlink_to(path)
    fenchel.save(SVR(alpha=2.0), link)
    assert link.is_symlink()
    assert fenchel.load(path).alpha == 2.0
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("unnamed", [True, False])
def test_names_may_be_as_long_as_they_can(unnamed, tmp_path, monkeypatch):
    if not unnamed:  # as on systems that have no files without names
        monkeypatch.delattr("os.O_TMPFILE", raising=False)
    path = tmp_path / ("n" * 255)
    for content in (b"old", b"new"):
        assert write_whole(path, content).read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("place", ["/dev/null", "."])
def test_devices_and_folders_are_not_replaced(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match="not a regular file") as caught:
        fenchel.save(SVR(), place)
    assert caught.value.filename == place


@pytest.mark.parametrize("length", [100, 10**6])
def test_sparse_matrices_are_read(length, tmp_path):
    """They are compressed, ones a thousandfold: only what is large in itself is refused."""
    matrix = sparse.csr_array(np.ones((1, length)))
    model = KernelRidge().set_params(kernel="linear")
    model.matrix_ = matrix
    found = fenchel.load(fenchel.save(model, tmp_path / "m.skops"), trusted=[type(matrix)]).matrix_
    assert (found != matrix).nnz == 0


@pytest.mark.parametrize(
    "model",
    [SVR, {"a": SVR()}, [SVR()], None, "SVR", np.ones(3), kernels.Gaussian()],
    ids=["class", "dict", "list", "None", "str", "array", "kernel"],
)
def test_what_is_no_estimator_is_not_saved(model, tmp_path):
    path = tmp_path / "m.skops"
    path.write_text("old")
    with pytest.raises(TypeError, match=r"^model must be an estimator, got ") as caught:
        fenchel.save(model, path)
    assert "\n" not in str(caught.value)
    assert path.read_text() == "old"


JSON = "metadata must hold what JSON can, and do not"
DEEP = {}
for _ in range(5000):
    DEEP = {"a": DEEP}


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ([1, 2], r"metadata must be a mapping or None, got \[1, 2\]$"),
        ("abc", "metadata must be a mapping or None, got 'abc'$"),
        ({"a": np.ones(2)}, f"{JSON}: Object of type ndarray is not"),
        ({(1, 2): 3}, f"{JSON}: keys must be str, int"),
        (DEEP, f"{JSON}: maximum recursion depth exceeded"),
    ],
    ids=["list", "str", "array", "tuple", "deep"],
)
def test_metadata_that_cannot_be_written(metadata, said, tmp_path):
    with pytest.raises(TypeError, match=f"^{said}"):
        fenchel.save(SVR(), tmp_path / "m.skops", metadata=metadata)
    assert list(tmp_path.iterdir()) == []


def test_places_and_types_that_are_none(tmp_path):
    path = fenchel.save(SVR(), tmp_path / "m.skops")
    calls = (lambda: fenchel.save(SVR(), 3), lambda: fenchel.load(3), lambda: load_metadata(3))
    for call in calls:
        with pytest.raises(TypeError, match=r"^path must be a str or a path, got 3$"):
            call()
    for trusted in ("numpy.int8", [3]):
        with pytest.raises(TypeError, match=r"^trusted must be types, functions and their names"):
            fenchel.load(path, trusted=trusted)
