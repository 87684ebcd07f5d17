"""``python docs/outputs.py [PAGE ...]``: run the code on pages, and show under it what it prints.

A block of Python on a page, and the block of text right after it, are code and its output. Tests
run the code and compare, and so does ``python docs/outputs.py --check PAGE ...``, which needs
nothing but what the pages need.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parent
_BLOCK = re.compile(
    r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<output>.*?)```\n)?", re.DOTALL
)
_IMPORT = re.compile(r"^(?:from|import) (\w+)", re.MULTILINE)
_NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e[+-]?\d+)?")


class Block(NamedTuple):
    """Code, what the page shows under it, and where both stand."""

    code: str
    shown: str
    start: int
    stop: int


def blocks_of(text: str) -> list[Block]:
    """Return the blocks of Python of a page, in order."""
    return [
        Block(match["code"], match["output"] or "", match.start(), match.end())
        for match in _BLOCK.finditer(text)
    ]


def printed_by(blocks: list[Block], name: str) -> Iterator[str]:
    """Run blocks one after the other, as a reader would, and yield what each prints.

    They run in a folder with the files that pages offer. A block that imports a package that is
    not installed is left out, and so is one after it that needs its names.
    """
    names: dict[str, object] = {"__name__": "page"}
    left_out = False
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for file in (DOCS / "_static").glob("*.csv"):
            (Path(folder) / file.name).write_bytes(file.read_bytes())
        for block in blocks:
            if any(find_spec(name) is None for name in _IMPORT.findall(block.code)):
                yield block.shown  # of a package that is not installed
                left_out = True
                continue
            written = io.StringIO()
            os.chdir(folder)
            try:
                with contextlib.redirect_stdout(written):
                    exec(compile(block.code, name, "exec"), names)
            except NameError:
                if not left_out:
                    raise
                yield block.shown
                continue
            finally:
                os.chdir(before)
            yield written.getvalue()


def agree(shown: str, printed: str) -> bool:
    """Whether two outputs are the same words, and numbers within 2 % or two of the last digit."""
    left, right = (" ".join(_NUMBER.sub("#", text).split()) for text in (shown, printed))
    numbers = zip(_NUMBER.findall(shown), _NUMBER.findall(printed), strict=False)
    return left == right and all(_close(one, other) for one, other in numbers)


def _close(shown: str, printed: str) -> bool:
    mantissa, _, exponent = shown.partition("e")
    digits = len(mantissa.partition(".")[2])
    last = 10.0 ** (int(exponent or 0) - digits)
    one, other = float(shown), float(printed)
    return abs(one - other) <= max(2.0 * last, 0.02 * abs(one)) if "." in shown else one == other


def with_outputs(text: str, name: str) -> str:
    """Return a page whose outputs are those of its code."""
    blocks = blocks_of(text)
    pieces, end = [], 0
    for block, printed in zip(blocks, printed_by(blocks, name), strict=True):
        pieces += [text[end : block.start], f"```python\n{block.code}```\n"]
        if printed:
            lines = [line.rstrip() for line in printed.splitlines()]
            pieces.append("\n```text\n" + "\n".join(lines) + "\n```\n")
        end = block.stop
    return "".join([*pieces, text[end:]])


def check(page: Path) -> None:
    """Raise where the code of a page prints something else than the page shows."""
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    for block, printed in zip(blocks, printed_by(blocks, str(page)), strict=True):
        if not agree(block.shown, printed):
            raise SystemExit(f"{page} shows\n{block.shown}and prints\n{printed}")


def main(names: list[str]) -> None:
    """Rewrite the pages that are named, or all with code; or check them."""
    if names[:1] == ["--check"]:
        for name in names[1:]:
            check(Path(name).resolve())
        return
    written = [DOCS.parent / "README.md", *sorted(DOCS.glob("**/*.md"))]
    for page in [Path(name) for name in names] or written:
        text = page.read_text(encoding="utf-8")
        new = with_outputs(text, str(page)) if "```python" in text else text
        if new != text:
            page.write_text(new, encoding="utf-8")
            sys.stdout.write(f"{page}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
