"""scikit-learn's callbacks, if the installed version has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]  # one of the two
        """Replacement for scikit-learn's class that says what is missing."""

        def set_callbacks(self, *callbacks: Any) -> Any:
            """Raise an error: this version of scikit-learn has no callbacks."""
            raise ImportError(
                "callbacks need scikit-learn 1.9 or later: pip install -U scikit-learn"
            )

        def _init_callback_context(self, **options: Any) -> None:
            return None

    def _with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        return method


_Method = TypeVar("_Method", bound=Callable[..., Any])


def with_callbacks(method: _Method) -> _Method:
    """Return the method, decorated if scikit-learn has callbacks, with unchanged type."""
    return cast(_Method, _with_callbacks(method))


class Tasks(NamedTuple):
    """Tell the callbacks of an estimator when each task of its fit begins and ends."""

    estimator: Any
    root: Any

    @classmethod
    def of(cls, estimator: Any, number: int) -> Tasks:
        """Begin a fit with this number of tasks."""
        root = estimator._init_callback_context(max_subtasks=number)
        if root is not None:
            root.call_on_fit_task_begin(estimator=estimator)
        return cls(estimator, root)

    def begin(self, name: str) -> Any:
        """Begin a task."""
        if self.root is None:
            return None
        return self.root.subcontext(task_name=name).call_on_fit_task_begin(
            estimator=self.estimator
        )

    def end(self, task: Any) -> None:
        """End a task, or the whole fit."""
        if task is not None:
            task.call_on_fit_task_end(estimator=self.estimator)


__all__ = ["CallbackSupportMixin", "Tasks", "with_callbacks"]
