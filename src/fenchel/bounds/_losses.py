"""Slope, range and theorem of a loss over the possible residuals."""

from __future__ import annotations

import numpy as np

from fenchel._typing import FloatArray
from fenchel._validation import shown
from fenchel.bounds._result import BOOK, JOINT
from fenchel.losses import Box, Local, Loss


def _box(loss: Loss) -> Box | None:
    """The box of one output, with no ε; None for another loss."""
    box = loss.box(loss.n_outputs or 1)
    return box and box._replace(epsilon=0.0)


def _is_squared(loss: Loss) -> bool:
    """Whether it is the squared loss, with ε or without."""
    box = _box(loss)
    return box is not None and box.is_squared


def scale_of(loss: Loss) -> float:
    """Return what a loss is multiplied with: squares carry no ½ in the textbook."""
    return 2.0 if _is_squared(loss) else 1.0


def risk_of(loss: Loss) -> str:
    """Return the name of the expected loss."""
    if _is_squared(loss):
        return "E ‖y - h(x)‖²" if not loss.epsilon else "E max(0, ‖y - h(x)‖ - ε)²"
    return f"E ℓ(y - h(x)), ℓ = {loss!r}"


def excess_of(loss: Loss, rivals: str) -> str:
    """Return the name of the expected loss without its tube, over that of the best rival."""
    if _is_squared(loss):
        return f"E ‖y - h(x)‖² - min over {rivals}"
    bare = " without its tube" if loss.epsilon else ""
    return f"E ℓ(y - h(x)) - min over {rivals}, ℓ = {loss!r}{bare}"


def theorem_of(loss: Loss, n_outputs: int, by_output: bool) -> str:
    """Return the source of a bound for kernel balls."""
    if n_outputs == 1 and _is_squared(loss):
        return f"{BOOK}, theorem {'11.14' if loss.epsilon else '11.11'}"
    box = _box(loss)
    linear = box is not None and box.is_linear
    if n_outputs == 1:
        absolute = box is not None and linear and np.all(box.upper == 1.0) and box.lower == -1.0
        return f"{BOOK}, theorem {'11.13' if absolute else '11.3'}"
    if not by_output:
        return f"{JOINT}, proposition A.1"
    if box is not None and linear and np.allclose(box.upper - box.lower, 1.0):
        return f"{JOINT}, theorem 4.1, contracted output by output"
    return f"{BOOK}, theorem 11.3, output by output"


def local(loss: Loss, residuals: FloatArray) -> Local:
    """Slope and range of a loss for residuals of at most these sizes, (p,), if it has any."""
    found = loss.local(residuals)
    if not np.all(np.isfinite(found.slopes)):
        raise ValueError(
            "estimator must have a loss whose slope is known, "
            f"got {shown(loss)} of {len(residuals)} "
            "outputs, which has no Lipschitz constant"
        )
    return found
