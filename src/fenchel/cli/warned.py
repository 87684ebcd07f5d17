"""Warnings on the command line: each is one sentence on stderr, whoever gives it."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from fenchel.cli.errors import one_sentence


def warn(messages: list[str]) -> None:
    """One line on stderr for each warning."""
    for message in messages:
        sys.stderr.write(f"fenchel: warning: {message}\n")


@contextlib.contextmanager
def as_sentences() -> Iterator[None]:
    """What Python would show of a warning, with a path and a line of source, as one sentence.

    Which warnings are shown is left to Python; each sentence is written once.
    """
    said: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        sentence = one_sentence(message)
        if sentence not in said:
            said.add(sentence)
            warn([sentence])

    before = warnings.showwarning
    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


@contextlib.contextmanager
def recorded() -> Iterator[list[str]]:
    """All warnings as sentences, each once, in a list that is filled in the end."""
    sentences: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield sentences
    sentences += dict.fromkeys(one_sentence(each.message) for each in caught)
