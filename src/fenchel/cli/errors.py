"""What is wrong with what the user gave."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

_AFTER_SENTENCE = re.compile(r"\.\s*\n")
_BETWEEN_SENTENCES = re.compile(r"\.\s+(?=[A-Z])")


class InputError(Exception):
    """Bad input: its message is one sentence, printed as it is, and the exit code is 2."""


def one_line(error: BaseException | str) -> str:
    """First sentence of a message, on a single line, whatever names and cells are in it."""
    first, *_ = _AFTER_SENTENCE.split(str(error))
    text = "".join(c if c.isprintable() or c.isspace() else repr(c)[1:-1] for c in first)
    return " ".join(text.split()) or type(error).__name__


def one_sentence(error: BaseException | str) -> str:
    """What another library says in several."""
    return _BETWEEN_SENTENCES.sub("; ", one_line(error)).rstrip(".")


@contextlib.contextmanager
def as_input_errors(start: str = "") -> Iterator[None]:
    """Turn what numbers and files raise into sentences that begin as given."""
    try:
        yield
    except (ValueError, TypeError, ArithmeticError) as error:
        raise InputError(f"{start}{one_sentence(error)}") from error
    except BrokenPipeError:  # the reader of our output has gone
        raise
    except OSError as error:  # such as a disk that is full
        said = error.strerror if error.filename is None and error.strerror else error
        raise InputError(f"{start}{one_sentence(said)}") from error
