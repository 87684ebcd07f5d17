from __future__ import annotations

import os
from pathlib import Path

import pytest

_FILES = {"FENCHEL_DATA": os.environ.get("FENCHEL_DATA", "")}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """No place of the user's is read or written; the folder that serves as cache."""
    monkeypatch.delenv("FENCHEL_DATA", raising=False)
    monkeypatch.delenv("FENCHEL_DATA_URL", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "fenchel"


@pytest.fixture
def real_files(monkeypatch) -> Path:
    """The folder of the real data sets, where the person who runs the tests has one."""
    if not _FILES["FENCHEL_DATA"]:
        pytest.skip("FENCHEL_DATA is unset: the data sets that are not bundled are not here")
    monkeypatch.setenv("FENCHEL_DATA", _FILES["FENCHEL_DATA"])
    return Path(_FILES["FENCHEL_DATA"])
