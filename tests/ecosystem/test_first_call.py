"""The first use after an installation."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import pytest
from numba.core.caching import FunctionCache

from fenchel._compiling import njit

COMPILE = """
import numpy as np
from fenchel.design.rows import row_products
for _ in range(2):
    row_products(np.ones((4, 2)), np.ones((4, 2)), np.empty(4))
"""
FIT = """
import sys
import numpy as np
from fenchel import SVR, KernelRidge
from fenchel.kernels import Gaussian
X = np.random.default_rng(0).normal(size=(300, 2))
for model in SVR, KernelRidge:
    model(kernel=Gaussian(0.5), alpha=1e-3, learn=False).fit(X, X[:, 0]).predict(X)
print("numba.misc.cffiimpl" in sys.modules)
"""
pty = pytest.importorskip("pty", reason="terminals of this system have no such module")
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}


def printed_on_a_terminal(code, cache):
    ours, theirs = pty.openpty()
    environment = {**ONE_THREAD, "NUMBA_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, "-c", code], stderr=theirs, env=environment, check=True)
    os.close(theirs)
    text = b""
    try:
        while part := os.read(ours, 4096):
            text += part
    except OSError:  # how a terminal ends
        pass
    os.close(ours)
    return text.decode()


@pytest.mark.slow
def test_compilation_is_announced_once_and_to_people_only(tmp_path):
    first = printed_on_a_terminal(COMPILE, tmp_path)
    assert first.startswith("fenchel: compiling for this machine")
    assert len(first.splitlines()) == 1
    assert printed_on_a_terminal(COMPILE, tmp_path) == ""
    environment = {**ONE_THREAD, "NUMBA_CACHE_DIR": str(tmp_path / "other")}
    quiet = subprocess.run(
        [sys.executable, "-c", COMPILE], capture_output=True, env=environment, check=True
    )
    assert quiet.stderr == quiet.stdout == b""


@pytest.mark.slow
def test_code_on_disk_is_read_without_the_tables_of_the_compiler(tmp_path):
    """They take longer than many fits; a process that compiles fills them."""
    environment = {**ONE_THREAD, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", FIT]
    filled = [
        subprocess.run(command, capture_output=True, env=environment, check=True).stdout.decode()
        for _ in range(2)
    ]
    assert filled == ["True\n", "False\n"]


def test_unknown_versions_of_numba_read_their_own_way(monkeypatch):
    monkeypatch.setattr(numba, "__version__", "9.0.0")
    loop = njit(cache=True)(added)
    assert type(loop._cache) is FunctionCache
    assert loop(1.0, 2.0) == 3.0


def added(a, b):
    return a + b
