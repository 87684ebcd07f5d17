"""Temporary files of rows: what is said where they cannot be written."""

from __future__ import annotations

import errno
import os

import numpy as np
import pandas as pd
import pytest

from fenchel import KernelRidge
from fenchel.cli import main
from fenchel.spool import Spool

SAID = "rows are kept in a temporary file in .*, which cannot be written .No space left on device"


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("call", ["pwrite", "ftruncate"])
def test_a_full_disk_is_said_with_a_remedy(call, monkeypatch):
    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match=f"{SAID}.*TMPDIR") as caught:
        Spool(2, 3).write(0, np.ones((3, 2)))
    assert caught.value.errno == errno.ENOSPC


def test_rows_that_could_not_be_written_are_not_there(monkeypatch):
    rows = Spool(2)
    rows.append(np.ones((3, 2)))
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match=SAID):
        rows.append(np.ones((3, 2)))
    assert rows.shape == (3, 2)


def test_fits_of_files_on_a_full_disk(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows").mkdir()
    frame = pd.DataFrame({"a": np.arange(30.0), "y": np.arange(30.0)})
    frame.to_parquet(tmp_path / "rows" / "t.pq")
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match=SAID):
        KernelRidge(learn=False).fit("rows", "y")
    assert main(["fit", "rows", "--target", "y", "--model", "ridge", "--quiet"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("fenchel: rows are kept in a temporary file in ")
    assert told.count("\n") == 1
