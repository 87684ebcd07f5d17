"""Folders whose names are columns, files that are not whole, columns that are not there."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from fenchel import KernelRidge
from fenchel.tables import TableEncoder

pytest.importorskip("pyarrow", reason="tables on disk need Arrow")


def keyed(folder, kind, extra=()):
    """Two files in folders k=0 and k=1, which have the column k as well."""
    for k in range(2):
        place = folder.joinpath(f"k={k}", *extra)
        place.mkdir(parents=True)
        rows = pd.DataFrame({"a": [1.0, 2.0, 4.0], "y": [0.0, 1.0, k]})
        rows.assign(k=np.array([k] * 3, dtype=kind)).to_parquet(place / "t.parquet")


@pytest.mark.parametrize("kind", ["int64", "int32", "float64"])
@pytest.mark.parametrize("extra", [(), ("year=2020",), ("year=2020", "part=3")])
def test_columns_of_folders_may_be_in_the_files_as_well(kind, extra, tmp_path):
    keyed(tmp_path / "t", kind, extra)
    model = KernelRidge(learn=False).fit(tmp_path / "t", "y")
    of_folders = {name: int(value) for name, _, value in (each.partition("=") for each in extra)}
    assert model.feature_names_in_.tolist() == ["a", "k", *of_folders]
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0] * 2, "k": [0, 0, 0, 1, 1, 1]})
    frame = frame.assign(**of_folders)
    expected = KernelRidge(learn=False).fit(frame, [0.0, 1.0, 0.0, 0.0, 1.0, 1.0])
    np.testing.assert_allclose(model.predict(frame), expected.predict(frame), atol=1e-4)


def test_arrays_that_are_not_whole(tmp_path):
    place = tmp_path / "t.npy"
    np.save(place, np.ones((100, 2)))
    place.write_bytes(place.read_bytes()[:-8])
    said = r"t.npy must have 1728 bytes for its array of shape \(100, 2\), and has 1720: it is not"
    with pytest.raises(ValueError, match=said):
        KernelRidge(learn=False).fit(place, np.ones(100))


def test_a_target_that_a_table_lacks_before_an_encoder(tmp_path):
    place = tmp_path / "t.parquet"
    numbers = [1.0, 2.0, 3.0]
    pd.DataFrame({"a": numbers, "w": list("xyx"), "y": numbers}).to_parquet(place)
    model = make_pipeline(TableEncoder(), KernelRidge(learn=False))
    with pytest.raises(ValueError, match=r"has no column 'nope'; its columns are a, w, y$"):
        model.fit(place, "nope")
