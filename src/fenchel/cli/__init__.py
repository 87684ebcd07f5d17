"""The command line: fit, predict and evaluate certified models on tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence

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
        Exit code: 0, or 2 after one sentence on stderr for bad input.

    Examples
    --------
    >>> from fenchel.cli import main
    >>> main(["datasets", "--json"])  # doctest: +ELLIPSIS
    [{"name": ...
    0
    """
    try:
        import pandas  # noqa: F401, PLC0415  (optional dependencies)
        import rich  # noqa: F401, PLC0415
        import typer  # noqa: F401, PLC0415
    except ImportError as error:
        return _complain(f"the command line needs {error.name}: pip install 'fenchel[cli]'")
    from fenchel.cli.app import run  # noqa: PLC0415

    try:
        return run(list(sys.argv[1:] if arguments is None else arguments))
    except InputError as error:
        return _complain(one_line(error))
    except KeyboardInterrupt:
        _complain("interrupted: nothing was written")
        return _INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone
        sys.stderr.close()
        return 1


def _complain(sentence: str) -> int:
    sys.stderr.write(f"fenchel: {sentence}\n")
    return _BAD_INPUT


__all__ = ["main"]
