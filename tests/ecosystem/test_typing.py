"""The types that users' mypy sees."""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("user_program.py")


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """Run mypy --strict, as a user outside of this project would, on a program."""
    api = pytest.importorskip("mypy.api", reason="mypy is not installed")
    folder = tmp_path_factory.mktemp("mypy")
    config = folder / "mypy.ini"
    config.write_text("[mypy]\n", encoding="utf-8")

    def run(program):
        cache = ["--config-file", str(config), "--cache-dir", str(folder / "cache")]
        said, complaint, _ = api.run(["--strict", *cache, str(program)])
        assert complaint == ""
        return said

    return run


def test_the_marker_of_types_is_shipped():
    assert files("fenchel").joinpath("py.typed").is_file()


@pytest.mark.slow
def test_a_program_without_mistakes(mypy, tmp_path):
    program = shutil.copy(PROGRAM, tmp_path / "program.py")
    assert mypy(program).startswith("Success")


@pytest.mark.slow
def test_mistakes_are_found(mypy, tmp_path):
    """Else nothing but Any would come out, and the program before would prove nothing."""
    program = tmp_path / "program.py"
    mistakes = [
        "fenchel.QuantileRegressor(colour=1)",
        "fenchel.KernelRidge(alpha='much')",
        "fenchel.SVR('huber', 0.1)",
        "fenchel.Lasso().colour",
        "fenchel.SVR().fit([[1.0]], [1.0], None, None, 3)",
        "fenchel.SVR().fit([[1.0]], [1.0]).predict([[1.0]]).colour",
        "fenchel.SVR().fit([[1.0]], [1.0]).certificate_.colour",
    ]
    program.write_text("\n".join(["import fenchel", *mistakes, ""]), encoding="utf-8")
    said = mypy(program)
    for line in range(2, 2 + len(mistakes)):
        assert f"program.py:{line}: error" in said, said
