"""Loops that are compiled, which happens once on each machine, and what is said meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import llvmlite.binding
import numba
from numba.core import event
from numba.core.caching import FunctionCache

# Versions whose insides are known to be as _Kept reads them; others read as numba does, slower.
_KNOWN = (0, 61), (0, 69)
INSIDE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of functions for compiled ones alone, which spare what Python would call them by."""
ORDER_IS_FREE = {"reassoc", "contract", "nsz"}
"""Option ``fastmath`` of sums in the order of the processor's registers; NaN stays what it is."""
_MESSAGE = (
    "fenchel: compiling for this machine, which takes some ten seconds and is kept for the next "
    "time"
)


class _Kept(FunctionCache):
    """Compiled code on disk, read without what only the compiler needs.

    numba fills its tables of all functions and types before it reads anything, which takes longer
    than many fits. The compiler fills them too, where there is nothing to read.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return code for arguments of these types, or None."""
        _tell_memory()
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]  # numba
        return None


@cache
def _tell_memory() -> None:
    """Say where compiled code finds what makes arrays and counts who holds them."""
    helpers = import_module("numba.core.runtime._nrt_python").c_helpers
    for name, address in helpers.items():
        llvmlite.binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """The decorator of numba, whose code on disk is read in a tenth of the time.

    Options are those of ``numba.njit``. Of versions that are not known it is numba's own.

    Examples
    --------
    >>> from fenchel._compiling import njit
    >>> @njit(nogil=True)
    ... def add(a, b):
    ...     return a + b
    >>> add(1, 2)
    3
    """
    version = tuple(int(part) for part in numba.__version__.split(".")[:2])
    if not _KNOWN[0] <= version < _KNOWN[1]:
        return numba.njit(**options)
    kept = options.pop("cache", False)
    compiled = numba.njit(**options)

    def decorate(function: Callable[..., Any]) -> Any:
        loop = compiled(function)
        if kept and hasattr(loop, "enable_caching"):  # with NUMBA_DISABLE_JIT it is the function
            loop._cache = _Kept(function)  # type: ignore[no-untyped-call]  # numba
        return loop

    return decorate


class Announcement(event.Listener):
    """Says it at the first loop of this library that is compiled, to people only."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: Any) -> None:
        """Look at what is compiled: nothing is where the cache has it."""
        ours = event.data["dispatcher"].py_func.__module__.startswith("fenchel.")
        if ours and not self.said and _people_read():
            self.said = True
            print(_MESSAGE, file=sys.stderr, flush=True)  # noqa: T201  (a program would seem to hang)

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


def announce_compilation() -> None:
    """Say once in a process, in a terminal or a notebook, that loops are being compiled."""
    event.register("numba:compile", Announcement())  # type: ignore[no-untyped-call]  # numba's


def _people_read() -> bool:
    """Whether what is printed is read as it appears."""
    return "ipykernel" in sys.modules or bool(sys.stderr is not None and sys.stderr.isatty())
