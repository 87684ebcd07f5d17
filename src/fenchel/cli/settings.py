"""What a fit is asked for, and what is wrong with that: nothing heavy is imported here."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fenchel._sentences import listed
from fenchel.cli.errors import InputError

QUANTILE, EXPECTILE, SUPPORT, RIDGE = "quantile", "expectile", "svr", "ridge"
NORMAL, DENSITY, CURVES = "normal", "density", "curves"
MODELS = (QUANTILE, EXPECTILE, SUPPORT, RIDGE, NORMAL, DENSITY, CURVES)
KERNELS = (
    "gaussian",
    "laplacian",
    "linear",
    "matern12",
    "matern32",
    "matern52",
    "polynomial",
    "rbf",
)
LEVELS = (0.1, 0.5, 0.9)
OF_LEVELS = (QUANTILE, EXPECTILE)
_ONLY_FOR = {
    "levels": OF_LEVELS,
    "level_gamma": OF_LEVELS,
    "epsilon": (*OF_LEVELS, SUPPORT),
    "non_crossing": (QUANTILE,),
    "coverage": (*OF_LEVELS, SUPPORT, RIDGE),
    "cv": (*OF_LEVELS, SUPPORT, RIDGE),
}
_EXCLUDE = (
    ("alpha", "cv", "--cv chooses alpha"),
    ("coverage", "levels", "--coverage chooses the levels"),
    ("coverage", "cv", "intervals are calibrated for a model that learns, or is given all"),
    ("non_crossing", "level_gamma", "curves that never cross are coupled by that"),
    ("non_crossing", "epsilon", "curves that never cross have no tube"),
    ("non_crossing", "cv", "curves that never cross learn kernel and alpha"),
)
LARGEST_SEED = 2**32 - 1  # of generators of NumPy
_LARGEST = 1e150  # squares of what is larger, or smaller than its inverse, are no numbers


@dataclass(frozen=True)
class Settings:
    """What the user asked for; :meth:`check` says what is wrong with it."""

    model: str = QUANTILE
    levels: str | None = None
    coverage: float | None = None
    non_crossing: bool = False
    alpha: float | None = None
    level_gamma: float | None = None
    epsilon: float | None = None
    kernel: str | None = None
    length_scale: str | None = None
    rank: int | None = None
    learn: bool = True
    cv: int | None = None
    seed: int = 0
    tol: float = 1e-6
    max_time: float | None = None
    n_jobs: int | None = None

    def check(self) -> None:
        """Raise one sentence on what is not allowed, if anything is."""
        if self.model not in MODELS:
            raise InputError(f"--model must be one of {listed(list(MODELS))}, got {self.model}")
        self._check_numbers()
        for name, models in _ONLY_FOR.items():
            if self.given(name) and self.model not in models:
                raise InputError(f"{option(name)} has no meaning for --model {self.model}")
        parse_levels(self.levels)
        self._check_kernel()
        for one, other, reason in _EXCLUDE:
            if self.given(one) and self.given(other):
                raise InputError(f"{option(one)} and {option(other)} exclude each other: {reason}")

    @property
    def is_rough(self) -> bool:
        """Whether features are as many as rows, unless the user says how many."""
        smooth = ("gaussian", "rbf", "linear", "polynomial")
        of_values = self.model in (*OF_LEVELS, SUPPORT) and not self.non_crossing
        return of_values and self.rank is None and self.learn and self.kernel not in smooth

    def given(self, name: str) -> bool:
        """Whether an option was given."""
        return getattr(self, name) not in (None, False)

    def _check_numbers(self) -> None:
        for name in ("alpha", "tol", "max_time"):
            value = getattr(self, name)
            if value is not None:
                _check_positive(option(name), value)
        if not 0 <= self.seed <= LARGEST_SEED:
            raise InputError(
                f"--seed must be a whole number from 0 to {LARGEST_SEED}, got {self.seed}"
            )
        if self.epsilon is not None and not 0.0 <= self.epsilon <= _LARGEST:
            raise InputError(
                f"--epsilon must be a number >= 0 of at most {_LARGEST:g}, got {self.epsilon:g}"
            )
        if self.level_gamma is not None and not self.level_gamma >= 0.0:
            raise InputError(f"--level-gamma must be >= 0, got {self.level_gamma:g}")
        if self.coverage is not None and not 0.0 < self.coverage < 1.0:
            raise InputError(
                f"--coverage must lie strictly between 0 and 1, got {self.coverage:g}"
            )
        if self.rank is not None and self.rank < 1:
            raise InputError(f"--rank must be a whole number >= 1, got {self.rank}")
        if self.n_jobs is not None and self.n_jobs == 0:
            raise InputError("--n-jobs must be a number of threads, or -1 for all cores, got 0")

    def _check_kernel(self) -> None:
        if self.kernel is not None and self.kernel not in KERNELS:
            raise InputError(f"--kernel must be one of {', '.join(KERNELS)}, got {self.kernel}")
        if self.length_scale is None:
            return
        if self.kernel in ("linear", "polynomial"):
            raise InputError(f"--length-scale has no meaning for the {self.kernel} kernel")
        parse_length_scale(self.length_scale)


OF_GROUPS = (QUANTILE, EXPECTILE, SUPPORT, RIDGE)
"""Models that hold out rows of a group together."""


def option(name: str) -> str:
    """The option of a field."""
    return f"--{name.replace('_', '-')}"


def parse_levels(text: str | None) -> list[float]:
    """Levels from a comma-separated list."""
    if text is None:
        return list(LEVELS)
    try:
        levels = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(
            f"--levels must be numbers with commas between them, such as 0.1,0.5,0.9, got {text!r}"
        ) from error
    if not all(0.0 < level < 1.0 for level in levels):
        raise InputError(f"--levels must lie strictly between 0 and 1, got {text}")
    if len(set(levels)) < len(levels):
        raise InputError(f"--levels must not repeat a level, got {text}")
    return levels


def parse_length_scale(text: str) -> str | float | tuple[float]:
    """A rule, a number, or a tuple with the quantile of the distances."""
    if text in ("median", "scale"):
        return text
    try:
        number = float(text.removeprefix("q"))
    except ValueError:
        number = -1.0
    if not 0.0 < number < math.inf or (text.startswith("q") and number > 1.0):
        raise InputError(
            "--length-scale must be a number > 0, median, scale, or q with a quantile of the "
            f"distances such as q0.7, got {text}"
        )
    if text.startswith("q"):
        return (number,)
    _check_positive("--length-scale", number)
    return number


def _check_positive(name: str, value: float) -> None:
    if not 0.0 < value < math.inf:
        raise InputError(f"{name} must be a number > 0, got {value:g}")
    if not 1.0 / _LARGEST <= value <= _LARGEST:
        raise InputError(
            f"{name} must be between {1.0 / _LARGEST:g} and {_LARGEST:g}, got {value:g}: its "
            "square would be 0 or infinite"
        )
