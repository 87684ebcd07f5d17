"""The command line: fit, predict and evaluate certified models on tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

from fenchel.cli.errors import InputError, one_line

_BAD_INPUT = 2
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the command's name; ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        Exit code: 0, 2 after one sentence on stderr for bad input, 130 after an interrupt, or 1
        where nobody reads the output any more.

    Examples
    --------
    >>> from fenchel.cli import main
    >>> main(["datasets", "--json"])  # doctest: +ELLIPSIS
    [{"name": ...
    0
    """
    try:
        return _run(arguments)
    except InputError as error:
        return _complain(", but ".join([one_line(error), *_notes(error)]))
    except KeyboardInterrupt as error:
        _complain(f"interrupted: {' and '.join(_notes(error)) or 'nothing was written'}")
        return _INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone, and knows why
        return 1


def _run(arguments: Sequence[str] | None) -> int:
    for package in ("pandas", "rich", "typer"):  # optional, and slow to import
        if find_spec(package) is None:
            raise InputError(f"the command line needs {package}: pip install 'fenchel[cli]'")
    from fenchel.cli.app import run  # noqa: PLC0415  (which needs these)
    from fenchel.cli.stdout import guarded  # noqa: PLC0415  (slow to import)
    from fenchel.cli.warned import as_sentences  # noqa: PLC0415  (not needed before)

    with guarded(), as_sentences():
        return run(list(sys.argv[1:] if arguments is None else arguments))


def _notes(error: BaseException) -> list[str]:
    """What is to be said of files that were written before."""
    return [one_line(note) for note in getattr(error, "__notes__", [])]


def _complain(sentence: str) -> int:
    sys.stderr.write(f"fenchel: {sentence}\n")
    return _BAD_INPUT


__all__ = ["main"]

__dir__ = __all__.copy
