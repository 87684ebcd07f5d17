"""Threads of linear algebra: none more than pay."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_SMALL = 1000


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def threads_that_pay(size: int) -> AbstractContextManager[Any]:
    """One thread for matrices with fewer than 1000 rows or columns, else what the user has set.

    Waking threads for small matrices costs several times what they save.
    """
    if size >= _SMALL:
        return nullcontext()
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited
