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
    for name, cell in {
        "gap": "",
        "na": "NA",
        "inf": "inf",
        "ninf": "-inf",
        "1e999": "1e999",
    }.items():
        put(f"{name}.csv", _cell(good, "z", 9, cell), "row 9")
        put(f"target {name}.csv", _cell(good, "y", 9, cell), "row 9")
    put("huge.csv", _cell(good, "z", 9, "1e200"), "'z'")
    put("nothing.csv", good.assign(z=np.nan).to_csv(index=False), "z (24")
    put("town gap.csv", _cell(good, "town", 7, None), "row 7")
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
        "dates": pd.Timestamp("2020-01-01"),
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
    columns = {"numeric": ["x", "z"], "words": ["town"], "boolean": ["flag"]}
    table = good_table()
    bare = fenchel.KernelRidge().fit(table[["x", "z"]], table["y"])
    with_metadata, with_arrays = _archives.with_metadata, _archives.with_arrays
    contents = {
        "empty": b"",
        "text": b"x,y\n1,2\n",
        "cut": whole[: len(whole) // 2],
        "head": whole[100:],
        "flipped": whole[:2000] + bytes([whole[2000] ^ 1]) + whole[2001:],
        "zip": _archives.archive_of({"a.txt": b"b"}),
        "target 3": with_metadata(parts, target=3),
        "no target": with_metadata(parts, target=None),
        "columns of words": with_metadata(parts, columns="x"),
        "columns of lists": with_metadata(parts, columns=[["x"]]),
        "columns of numbers": with_metadata(parts, columns={**columns, "numeric": [1, 2]}),
        "more kinds": with_metadata(parts, columns={**columns, "dates": []}),
        "other columns": with_metadata(parts, columns={**columns, "numeric": ["q"]}),
        "fewer columns": with_metadata(parts, columns={**columns, "numeric": ["x"]}),
        "swapped": with_metadata(parts, columns={**columns, "words": ["flag"], "boolean": []}),
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
