"""Places of tables and of what is written: folders, links, full disks, names that clash."""

from __future__ import annotations

import resource

import numpy as np
import pandas as pd
import pytest

from fenchel.cli import main
from fenchel.cli.errors import InputError
from fenchel.cli.places import written_whole

FIT = ["--target", "y", "--model", "ridge", "--no-learn", "--alpha", "1e-2", "--quiet"]


def table(n=30):
    numbers = np.arange(float(n))
    return pd.DataFrame({"a": numbers, "mean": numbers, "prediction": numbers, "y": numbers})


@pytest.fixture
def limited():
    """Files of at most 1000 bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize("size", [1001, 10**6])  # what is written at the end, and before
def test_outputs_that_do_not_fit_are_said_in_a_sentence(here, size):
    (here / "p.csv").write_text("old")
    with (
        pytest.raises(InputError, match=r"^p.csv cannot be written: File too large$"),
        written_whole(here.joinpath("p.csv").relative_to(here)) as file,
    ):
        file.write("x" * size)
    assert (here / "p.csv").read_text() == "old"
    assert [place.name for place in here.iterdir()] == ["p.csv"]
    with (
        pytest.raises(InputError, match=r"^a temporary file in .* cannot be written: File too"),
        written_whole(None) as file,
    ):
        file.write("x" * size)


def test_folders_of_files_with_the_short_ending_and_links_to_folders(here, capsys):
    (here / "real").mkdir()
    table().to_parquet(here / "real" / "t.pq")
    (here / "rows").mkdir()
    (here / "rows" / "link").symlink_to(here / "real")
    assert main(["fit", "rows", *FIT, "--out", "m.skops"]) == 0
    assert main(["predict", "m.skops", "rows", "--out", "p.csv"]) == 0
    assert len(pd.read_csv("p.csv")) == 30
    (here / "real" / "p.csv").write_text("old")
    assert main(["predict", "m.skops", "rows", "--out", "real/p.csv"]) == 2
    assert "must be another file than the table that is read" in capsys.readouterr().err
    (here / "real" / "t.pq").unlink()
    assert main(["fit", "rows", *FIT]) == 2
    assert "rows is a folder, and a CSV or Parquet file is needed" in capsys.readouterr().err


def test_predictions_of_a_folder_keep_the_mode_of_the_file(here):
    (here / "rows").mkdir()
    table().to_parquet(here / "rows" / "t.parquet")
    assert main(["fit", "rows", *FIT, "--out", "m.skops"]) == 0
    (here / "p.csv").write_text("old")
    (here / "p.csv").chmod(0o600)
    assert main(["predict", "m.skops", "rows", "--out", "p.csv"]) == 0
    assert (here / "p.csv").stat().st_mode & 0o777 == 0o600
    assert len(pd.read_csv("p.csv")) == 30


def test_columns_beside_predictions_have_other_names(here, capsys):
    table().to_csv("t.csv", index=False)
    said = "fenchel: --ids: '{}' is the name of a column of predictions\n"
    normal = [*FIT[:2], "--model", "normal", *FIT[-1:]]
    for options, name in ((FIT, "prediction"), (normal, "mean")):
        assert main(["fit", "t.csv", *options, "--ids", name, "--out", "m.skops"]) == 2
        assert capsys.readouterr().err == said.format(name)
    assert main(["fit", "t.csv", *FIT, "--ids", "mean", "--out", "m.skops"]) == 0
