"""Standard output that says of its failures that they are its own."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import Any

from fenchel.cli.errors import InputError


class Stdout:
    """What is printed goes to ``stream``; characters that it does not have are escaped."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write to the stream."""
        with self._saying():
            try:
                self._stream.write(text)
            except UnicodeEncodeError:
                encoding = self._stream.encoding
                self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        if self._stream is not None:  # else nothing has been written
            with self._saying():
                self._stream.flush()

    @contextlib.contextmanager
    def _saying(self) -> Iterator[None]:
        try:
            if self._stream is None:  # as Python leaves it where the descriptor is closed
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            yield
        except BrokenPipeError:
            self._drop()
            raise
        except OSError as error:
            self._drop()
            reason = error.strerror or error
            raise InputError(f"standard output cannot be written: {reason}") from error

    def _drop(self) -> None:
        """Send to nowhere what is left in the buffer, which Python would write at its end."""
        with contextlib.suppress(AttributeError, OSError, ValueError):
            number = self._stream.fileno()
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Print through a :class:`Stdout`, and flush it in the end."""
    stdout = Stdout(sys.stdout)
    with contextlib.redirect_stdout(stdout):
        yield
        stdout.flush()
