"""Experiments in their quick form, and what all of them write."""

from __future__ import annotations

from importlib import import_module

import pandas as pd


def quick_form(name, folder, *options, pictures=()):
    """Run the quick form of an experiment in a folder: its table, and its page."""
    import_module(f"experiments.{name}").main(["--quick", "--out", str(folder), *options])
    pictures = {"picture.png", *pictures}
    assert {path.name for path in folder.iterdir()} == {"results.csv", "page.md", *pictures}
    for picture in pictures:
        assert (folder / picture).read_bytes().startswith(b"\x89PNG")
    return pd.read_csv(folder / "results.csv"), (folder / "page.md").read_text()
