"""Imports run only downward, and no source file is too long to be read in one sitting."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import fenchel

# From the ground up. Rooms on one floor do not know each other. A new room gets its floor here.
FLOORS: list[set[str]] = [
    {"_clock", "_compiling", "_folders", "_parameters", "_sentences", "_typing"},
    {"_threads"},
    {"_bases", "_grids", "_memory", "_quantiles", "_validation"},
    {"_groups", "spool"},
    {"files"},
    {"certificate", "datasets", "design", "norms", "tables"},
    {"kernels", "losses", "repair"},
    {"features", "metrics", "norm_problem", "problem"},
    {"distributions", "solvers"},
    {"learning", "searchable"},
    {"estimator"},
    {"learning_estimator"},
    {"named_kernel"},
    {"norm_ball"},
    {"functional", "online", "positive", "regression"},
    {"dask", "model_selection"},
    {"bounds", "inspection", "persistence"},
    {"plotting"},
    {"report", "testing"},
    {"cli"},
    {"__main__"},
]
# (importer, imported): why two rooms of one floor may know each other.
ALLOWED: dict[tuple[str, str], str] = {}
# Modules at the top that all rooms share, whose public names are for everyone.
SHARED = {
    "_bases",
    "_clock",
    "_compiling",
    "_folders",
    "_grids",
    "_groups",
    "_memory",
    "_parameters",
    "_quantiles",
    "_sentences",
    "_threads",
    "_typing",
    "_validation",
}
MAX_LINES = 500

PACKAGE = "fenchel"

Targets = Iterable[tuple[int, list[str]]]
"""Line and full name, in parts, of all that is imported."""


def violations(source: Path) -> list[str]:
    """Sentences on what is wrong with the package in the folder ``source``."""
    height = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
    found = []
    for path in sorted(source.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(source).as_posix()
        if (n_lines := len(text.splitlines())) > MAX_LINES:
            found.append(f"{name} has {n_lines} lines, more than {MAX_LINES}")
        room = path.relative_to(source).parts[0].removesuffix(".py")
        targets = list(targets_of(ast.parse(text), path.relative_to(source)))
        found += private_imports(targets, path.relative_to(source), room)
        if room == "__init__":
            continue  # the root shows all rooms
        if room not in height:
            found.append(f"{name}: the room {room} has no floor in FLOORS")
            continue
        for line, imported in imports(targets, source):
            arrow = f"{name}:{line}: {room} imports {imported or PACKAGE}"
            if imported == "":
                found.append(f"{arrow}, which imports all rooms")
            elif imported not in height:
                found.append(f"{arrow}, which has no floor in FLOORS")
            elif imported == room or (room, imported) in ALLOWED:
                continue
            elif height[imported] > height[room]:
                found.append(f"{arrow}, which lies higher")
            elif height[imported] == height[room]:
                found.append(f"{arrow}, which lies on the same floor")
    return found


def private_imports(targets: Targets, path: Path, room: str) -> list[str]:
    """Sentences on private modules and names that are imported from another room."""
    found = []
    for line, (root, *rest) in targets:
        if root != PACKAGE or not rest or rest[0] == room:
            continue
        names = rest[1:] if rest[0] in SHARED else rest
        # names between double underscores are public by convention
        private = [name for name in names if name.startswith("_") and not name.endswith("__")]
        imported = ".".join(rest)
        if private:
            found.append(f"{path.as_posix()}:{line}: {room} imports {imported}, which is private")
    return found


def imports(targets: Targets, source: Path) -> Iterator[tuple[int, str]]:
    """Line and room of each import of our own package; the room "" stands for the root."""
    seen = set()
    for line, (root, *rest) in targets:
        room = rest[0] if rest and _is_room(source, rest[0]) else ""
        if root == PACKAGE and (line, room) not in seen:
            seen.add((line, room))
            yield line, room


def targets_of(tree: ast.Module, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line and full name, in parts, of all that is imported.

    Imports inside functions, for type checkers only, or by ``import_module`` with a literal
    name count as well.
    """
    package = [PACKAGE, *path.parent.parts]
    for node in ast.walk(tree):
        targets: list[list[str]] = []
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            targets = [[*base, alias.name] for alias in node.names]
        elif (
            isinstance(node, ast.Call)
            and "import_module" in (getattr(node.func, "id", ""), getattr(node.func, "attr", ""))
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            targets = [str(node.args[0].value).split(".")]
        for target in targets:
            yield node.lineno, target


def imports_of(room: str, source: Path) -> set[str]:
    """Rooms that a room imports."""
    path = source / room
    files = path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")]
    return {
        imported
        for file in files
        for _, imported in imports(
            targets_of(ast.parse(file.read_text(encoding="utf-8")), file.relative_to(source)),
            source,
        )
    }


def _is_room(source: Path, name: str) -> bool:
    return (source / name / "__init__.py").is_file() or (source / f"{name}.py").is_file()


def test_imports_run_downward_and_files_are_short():
    assert fenchel.__file__ is not None
    assert violations(Path(fenchel.__file__).parent) == []


def test_each_room_has_one_floor():
    assert fenchel.__file__ is not None
    rooms = [room for floor in FLOORS for room in floor]
    assert len(rooms) == len(set(rooms))
    gone = [room for room in rooms if not _is_room(Path(fenchel.__file__).parent, room)]
    assert not gone, f"{gone} are in FLOORS and in no folder"


def test_allowed_pairs_share_a_floor_and_have_a_reason():
    for pair, reason in ALLOWED.items():
        assert any(set(pair) <= floor for floor in FLOORS)
        assert reason


@pytest.fixture
def house(tmp_path):
    """A small package in order: the root, losses, problem, two solvers, regression, kernels."""
    files = {
        "__init__.py": "from fenchel.regression import Fit\n",
        "losses/__init__.py": "from fenchel.losses.atoms import Loss\n",
        "losses/atoms.py": "from fenchel.losses._fast import _f\n\n\nclass Loss: ...\n",
        "_typing.py": "",
        "kernels/__init__.py": "",
        "problem.py": "from fenchel.losses import Loss\n",
        "solvers/__init__.py": "from . import newton\nfrom .newton import solve\n",
        "solvers/newton.py": "from ..problem import Loss\nfrom fenchel import losses\n",
        "regression/__init__.py": "import fenchel.solvers.newton as newton\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_checker_accepts_a_house_in_order(house):
    assert violations(house) == []


@pytest.mark.parametrize(
    ("file", "line", "complaint"),
    [
        ("problem.py", "from fenchel.solvers import solve", "problem imports solvers"),
        ("problem.py", "from fenchel.solvers.newton import solve", "problem imports solvers"),
        ("problem.py", "import fenchel.regression", "problem imports regression"),
        ("problem.py", "from fenchel import solvers", "problem imports solvers"),
        ("problem.py", "from . import solvers", "problem imports solvers"),
        ("losses/atoms.py", "from ..problem import Loss", "losses imports problem"),
        ("losses/__init__.py", "from ..problem import Loss", "losses imports problem"),
        ("losses/atoms.py", "def f():\n    import fenchel.problem", "losses imports problem"),
        ("losses/atoms.py", "if TYPE_CHECKING:\n    from .. import problem", "losses imports"),
        ("losses/atoms.py", "importlib.import_module('fenchel.problem')", "losses imports"),
        ("losses/atoms.py", "from fenchel.kernels import Gaussian", "on the same floor"),
        ("solvers/newton.py", "from fenchel import __version__", "which imports all rooms"),
        ("solvers/newton.py", "import fenchel", "which imports all rooms"),
        ("attic.py", "import numpy", "attic has no floor"),
        ("problem.py", "x = 1\n" * MAX_LINES, "more than 500"),
        ("problem.py", "from fenchel.losses._fast import f", "losses._fast.f, which is private"),
        ("problem.py", "from fenchel.losses import _fast", "which is private"),
        ("problem.py", "from .losses.atoms import _f", "losses.atoms._f, which is private"),
        ("problem.py", "import fenchel.losses._fast", "which is private"),
        ("problem.py", "importlib.import_module('fenchel.losses._fast')", "which is private"),
        ("problem.py", "from fenchel._typing import _Array", "_typing._Array, which is private"),
        ("__init__.py", "from fenchel.losses._fast import f", "which is private"),
    ],
)
def test_checker_detects(house, file, line, complaint):
    path = house / file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(f"{text}{line}\n", encoding="utf-8")
    (found,) = violations(house)
    assert found.startswith(file)
    assert complaint in found
