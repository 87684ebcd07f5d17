"""What is wrong with what the user gave."""

from __future__ import annotations


class InputError(Exception):
    """Bad input: its message is one sentence, printed as it is, and the exit code is 2."""


def one_line(error: BaseException | str) -> str:
    """Message on a single line."""
    text = " ".join(str(error).split())
    return text or type(error).__name__


def listed(names: list[str], limit: int = 12) -> str:
    """Names with commas, not too many of them."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown}, … ({len(names)} in all)"
