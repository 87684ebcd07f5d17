"""A folder of tables and models, most of which are bad; each name says what is wrong."""

from __future__ import annotations

import contextlib
import gzip
import io
from pathlib import Path

import numpy as np
import pandas as pd

import fenchel
from attacks import _archives
from fenchel.cli import main

ROWS = 24


def good_table() -> pd.DataFrame:
    """Two columns of numbers, one of words, one of true and false, and a target."""
    chance = np.random.default_rng(0)
    table = pd.DataFrame({"x": chance.uniform(size=ROWS).round(5)})
    table["z"] = chance.uniform(size=ROWS).round(5)
    table["town"] = ["Bonn", "Köln", "Trier"] * (ROWS // 3)
    table["flag"] = table["z"] > 0.5
    table["y"] = (np.sin(5 * table["x"]) + table["z"]).round(5)
    return table


def _cell(table: pd.DataFrame, column: str, row: int, cell: object) -> str:
    new = table.astype({column: object})
    new.loc[row - 1, column] = cell
    return new.to_csv(index=False)


def _constant(table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"x": ["Bonn"] * len(table), "z": np.nan, "y": table["y"]})


def tables(folder: Path) -> dict[str, tuple[str, ...]]:
    """Write the tables; of the bad ones, what a message must name (one of these)."""
    good = good_table()
    text = good.to_csv(index=False)
    good.to_csv(folder / "good.csv", index=False)
    lines = text.splitlines()
    named: dict[str, tuple[str, ...]] = {}

    def put(name: str, content: str | bytes, *words: str) -> None:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        named[name] = words or (name,)

    put("empty.csv", "")
    put("blank.csv", "\n\n \n")
    put("header.csv", lines[0] + "\n")
    put("utf16.csv", text.encode("utf-16"), "UTF-16")
    put("utf16le.csv", text.encode("utf-16-le"), "UTF-16")
    put("latin.csv", text.encode("latin-1"), "line 3")
    put("random.csv", np.random.default_rng(0).bytes(4000), "line")
    put("gzip.csv", gzip.compress(text.encode(), mtime=0), "line 1")
    put("zero.csv", text.replace("Trier", "Tr\0er", 1), "line 4")
    put("ragged.csv", text + "1,2,Bonn,True,3,4,5\n")
    put("torn.csv", text + '1,2,"Bonn\n')
    put("shifted.csv", "\n".join([lines[0], *("7," + line for line in lines[1:])]), "more cells")
    put("semicolons.csv", text.replace(",", ";"), "y")
    put("twice.csv", text.replace("x,z", "x,x", 1), "'x'")
    put("target twice.csv", text.replace("x,z", "y,z", 1), "'y'")
    put("short.csv", text + "0.5\n", f"row {ROWS + 1}")
    cells = {
        "dash": "-",
        "star": "0.3*",
        "mark": "?",
        "word": "n.v.t",
        "unit": "3 km",
        "date": "1.1.20",
    }
    for name, cell in cells.items():
        put(f"{name}.csv", _cell(good, "x", 5, cell), f"{cell!r} in row 5")
        put(f"target {name}.csv", _cell(good, "y", 5, cell), f"{cell!r} in row 5")
    commas = good.assign(x=good["x"].map(lambda v: f"{v:.3f}".replace(".", ",")))
    put("commas.csv", commas.to_csv(index=False), "'x'")
    for name, cell in {"inf": "inf", "ninf": "-inf", "1e999": "1e999"}.items():
        put(f"{name}.csv", _cell(good, "z", 9, cell), "row 9")
        put(f"target {name}.csv", _cell(good, "y", 9, cell), "row 9")
    dates = pd.date_range("1968-12-01", periods=ROWS).strftime("%Y-%m-%d")
    put("date.csv", _cell(good.assign(x=dates), "x", 5, "soon"), "'soon' in row 5", "row 1")
    put("days.csv", _cell(good.assign(x=dates), "x", 5, "1969-02-30"), "row 5", "row 1")
    put("huge.csv", _cell(good, "z", 9, "1e200"), "'z'")
    put(
        "target nothing.csv", good.assign(y=np.nan).to_csv(index=False), "no value in the target y"
    )
    put("one word.csv", _constant(good).to_csv(index=False), "x (the same in every row)")
    put("lonely.csv", good[["y"]].to_csv(index=False), "x", "beside the target")
    put("no target.csv", good.drop(columns="y").to_csv(index=False), "'y'")
    put("target words.csv", good.assign(y=good["town"]).to_csv(index=False), "'Bonn' in row 1")
    put("target flag.csv", good.assign(y=good["flag"]).to_csv(index=False), "'True' in row 1")
    put("fake.parquet", text)
    good.to_parquet(folder / "good.parquet")
    whole = (folder / "good.parquet").read_bytes()
    put("cut.parquet", whole[: len(whole) // 2])
    put("empty.parquet", b"")
    put("table.xlsx", text, ".csv")
    put("no ending", text, ".csv")
    for name, column in {
        "times": pd.Timedelta("1h"),
        "lists": [[1, 2]] * ROWS,
        "bytes": [b"ab"] * ROWS,
        "mixed": ["0.5"] * (ROWS - 1) + ["-"],
    }.items():
        good.assign(x=column).to_parquet(folder / f"{name}.parquet")
        named[f"{name}.parquet"] = ("'x'",)
    (folder / "folder.csv").mkdir()
    (folder / "nowhere.csv").symlink_to("none")
    (folder / "circle.csv").symlink_to("circle.csv")
    named |= {"folder.csv": ("folder.csv",), "nowhere.csv": ("nowhere.csv",)}
    named |= {"circle.csv": ("circle.csv",), "good.csv/in.csv": ("good.csv/in.csv",)}
    named |= {"none.csv": ("none.csv",), "": ("DATA",), "engle": ("engle",), "folder": ("folder",)}
    named |= {f"{'n' * 300}.csv": ("DATA",), "a\nb.csv": ("a b.csv",), "a\0b": ("DATA",)}
    (folder / "folder").mkdir()
    return named


def models(folder: Path) -> dict[str, tuple[str, ...]]:
    """Write the models, likewise; good.skops is good."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.chdir(folder):
        fit = ["fit", "good.csv", "--target", "y", "--levels", "0.1,0.5,0.9"]
        if main([*fit, "--out", "good.skops"]):
            raise RuntimeError("the good model cannot be fitted")
    whole = (folder / "good.skops").read_bytes()
    parts = _archives.members_of(whole)
    table = good_table()
    bare = fenchel.KernelRidge().fit(table[["x", "z"]], table["y"])
    with_metadata, with_arrays = _archives.with_metadata, _archives.with_arrays
    with_schema = _archives.with_schema
    contents = {
        "empty": b"",
        "text": b"x,y\n1,2\n",
        "cut": whole[: len(whole) // 2],
        "head": whole[100:],
        "flipped": whole[:2000] + bytes([whole[2000] ^ 1]) + whole[2001:],
        "zip": _archives.archive_of({"a.txt": b"b"}),
        "target 3": with_metadata(parts, target=3),
        "no target": with_metadata(parts, target=None),
        "no kinds": with_schema(parts, '"kinds_"', '"kinds"'),
        "other columns": with_schema(parts, '"x": {', '"q": {'),
        "kinds of numbers": with_schema(parts, r'"\"number\""', "3"),
        "unknown kinds": with_schema(parts, r'"\"number\""', r'"\"none\""'),
        "numbers as words": with_schema(parts, r'"\"number\""', r'"\"category\""'),
        "numbers as dates": with_schema(parts, r'"\"number\""', r'"\"date\""'),
        "flags as texts": with_schema(parts, r'"\"flag\""', r'"\"text\""'),
        "other parts": with_schema(parts, "part 0", "part 7"),
        "twice arrays": with_arrays(parts, lambda a: np.concatenate([a, a]) if a.ndim else a),
        "flat arrays": with_arrays(parts, lambda a: a.ravel()[:1]),
        "arrays of words": with_arrays(parts, lambda a: a.astype(str)),
        "cubes": with_arrays(parts, lambda a: a[None, None]),
        "no arrays left": with_arrays(parts, lambda a: a[:0] if a.ndim else a),
    }
    contents |= _archives.bombs(parts) | _archives.hostile(parts)
    for name, content in contents.items():
        (folder / f"{name}.skops").write_bytes(content)
    fenchel.save(bare, folder / "bare.skops")
    fenchel.save(bare, folder / "guess.skops", metadata={"target": "y", "columns": ["x", "z"]})
    named = {f"{name}.skops": (f"{name}.skops",) for name in [*contents, "bare", "guess"]}
    (folder / "folder.skops").mkdir()
    (folder / "circle.skops").symlink_to("circle.skops")
    named["other columns.skops"] = ("the column q",)
    named |= {name: (name,) for name in ("none.skops", "folder.skops", "circle.skops", "good.csv")}
    return named | {"": ("MODEL",), "m" * 300: ("MODEL",), "a\0b": ("MODEL",)}
