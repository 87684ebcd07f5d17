"""No types asked for where capabilities should be, no circles, no endless files of tests."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest

import fenchel
import fenchel.design
import fenchel.losses
import fenchel.norm_problem
import fenchel.positive
import fenchel.problem
from fenchel.losses import ConvexFunction
from test_architecture import FLOORS, SHARED

SOURCE = Path(fenchel.__file__).parent
TESTS = Path(__file__).parent
MAX_TEST_LINES = 500
# Rooms in which a loss, a design or a problem is asked what it can do, never what it is.
ASKING = {
    "estimator.py",
    "functional",
    "model_selection",
    "norm_problem.py",
    "positive",
    "problem.py",
    "regression",
    "repair.py",
    "solvers",
}
METHODS = (FunctionType, classmethod, property, staticmethod)
PROBLEM_TYPES = {"NormProblem", "PSDProblem", "Problem"}


def asked_types() -> set[str]:
    """Names of all losses, designs and problems."""
    rooms = (fenchel.losses, fenchel.design, fenchel.positive)
    found = set(PROBLEM_TYPES)
    for room in rooms:
        for name, kind in vars(room).items():
            if inspect.isclass(kind) and issubclass(kind, (ConvexFunction, fenchel.design.Design)):
                found.add(name)
    return found


def isinstance_calls(tree: ast.Module) -> Iterator[tuple[int, str, set[str]]]:
    """Line, first argument, and names of the types of each ``isinstance`` and ``type(x) is``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
            "isinstance",
            "issubclass",
        ):
            names = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
            names |= {n.attr for n in ast.walk(node.args[1]) if isinstance(n, ast.Attribute)}
            yield node.lineno, ast.unparse(node.args[0]), names
        if isinstance(node, ast.Compare) and "type" in {
            getattr(part, "id", "") for part in ast.walk(node.left)
        }:
            names = {
                n.id for c in node.comparators for n in ast.walk(c) if isinstance(n, ast.Name)
            }
            yield node.lineno, ast.unparse(node.left), names


def ladders(source: Path, asked: set[str]) -> list[str]:
    """Places that ask for the type of a loss, a design or a problem."""
    found = []
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source)
        for line, argument, types in isinstance_calls(ast.parse(path.read_text(encoding="utf-8"))):
            if argument == "problem" or (name.parts[0] in ASKING and types & asked):
                found.append(f"{name.as_posix()}:{line}: isinstance({argument}, {sorted(types)})")
    return found


def module_name(path: Path, source: Path) -> str:
    """Dotted name below the package; a package is its ``__init__``."""
    parts = list(path.relative_to(source).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def edges(source: Path) -> dict[str, set[str]]:
    """Which module imports which, anywhere in its file."""
    modules = {module_name(path, source): path for path in source.rglob("*.py")}
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (
                isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fenchel.")
            ):
                continue
            base = str(node.module).removeprefix("fenchel.")
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                graph[name].add(whole if whole in modules else base)
    return graph


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Modules that reach themselves, as one example of a way round for each."""
    found = []
    for start in sorted(graph):
        ways, seen = [[start]], set()
        while ways:
            way = ways.pop()
            for following in sorted(graph.get(way[-1], set())):
                if following == start:
                    if min(way) == start:
                        found.append([*way, start])
                    ways = []
                    break
                if following not in seen:
                    seen.add(following)
                    ways.append([*way, following])
    return found


def test_nobody_asks_for_the_type_of_a_loss_a_design_or_a_problem():
    assert ladders(SOURCE, asked_types()) == []


def test_modules_do_not_import_in_circles():
    assert circles(edges(SOURCE)) == []


def test_there_are_three_problem_types():
    defined = {
        name
        for path in SOURCE.rglob("*.py")
        for name in re.findall(r"^ *class (\w*Problem)\b", path.read_text(encoding="utf-8"), re.M)
    }
    assert defined == PROBLEM_TYPES


def test_the_picture_shows_the_rooms_that_there_are():
    """``python docs/draw_rooms.py`` draws it anew."""
    picture = (TESTS.parent / "docs" / "_static" / "rooms.svg").read_text(encoding="utf-8")
    rooms = set().union(*FLOORS) - SHARED - {"__main__"}
    assert {room for room in rooms if f">{room}<" not in picture} == set()


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: path.name)
def test_files_of_tests_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_TEST_LINES


@pytest.mark.parametrize(
    "line",
    [
        "def f(problem):\n    return isinstance(problem, Problem)",
        "def f(loss):\n    return isinstance(loss, Squared)",
        "def f(loss):\n    return isinstance(loss, (int, losses.Pinball))",
        "def f(loss):\n    return type(loss) is Squared",
    ],
)
def test_ladders_are_found(tmp_path, line):
    (tmp_path / "solvers").mkdir()
    (tmp_path / "solvers" / "newton.py").write_text(line, encoding="utf-8")
    assert len(ladders(tmp_path, asked_types())) == 1


def test_circles_are_found(tmp_path):
    (tmp_path / "a.py").write_text("from fenchel.b import x\n", encoding="utf-8")
    (tmp_path / "b.py").write_text("def f():\n    from fenchel.a import y\n", encoding="utf-8")
    (tmp_path / "c.py").write_text("from fenchel.a import y\n", encoding="utf-8")
    assert circles(edges(tmp_path)) == [["a", "b", "a"]]


def silent_methods(kind: type) -> list[str]:
    """Public methods that say nothing, and whose bases do not say it either."""
    own = [name for name, value in vars(kind).items() if isinstance(value, METHODS)]
    said = [name for base in kind.__mro__ for name, value in vars(base).items() if value.__doc__]
    return [name for name in own if name[0] != "_" and name not in said]


def test_public_methods_say_what_they_do():
    silent, looked_at = [], 0
    for found in pkgutil.walk_packages(fenchel.__path__, "fenchel."):
        if "._" in found.name:
            continue
        for name, kind in inspect.getmembers(importlib.import_module(found.name), inspect.isclass):
            if kind.__module__ == found.name and name[0] != "_":
                looked_at += 1
                silent += [f"{found.name}.{name}.{method}" for method in silent_methods(kind)]
    assert looked_at > 100
    assert not silent, f"a sentence is missing: {silent}"


def test_silence_is_found():
    class Silent(fenchel.losses.Squared):
        def value(self, residual): ...
        def other(self): ...

    assert silent_methods(Silent) == ["other"]


def compiled_loops() -> Iterator[tuple[Path, ast.FunctionDef]]:
    """All functions that numba compiles."""
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if re.search("njit|_compiled", text) else ():
            if isinstance(node, ast.FunctionDef):
                decorators = " ".join(ast.unparse(each) for each in node.decorator_list)
                if "njit" in decorators or "_compiled" in decorators:
                    yield path, node


def test_compiled_loops_return_no_arrays():
    """For an array that is returned numba calls Python, and an interrupt of that call is lost.

    It surfaces as a SystemError then, in place of a KeyboardInterrupt.
    """
    loops = list(compiled_loops())
    assert len(loops) > 30
    returning = [
        f"{path.relative_to(SOURCE)}: {node.name}"
        for path, node in loops
        if node.returns is None or "Array" in ast.unparse(node.returns)
    ]
    assert not returning, "they must write into arrays that they are given: " + str(returning)


def test_compiled_loops_copy_arrays_entry_by_entry():
    """For ``row[:] = values`` numba compiles how to say that the shapes differ, for seconds."""
    copies = [
        f"{path.relative_to(SOURCE)}: {ast.unparse(node)}"
        for path, loop in compiled_loops()
        for node in ast.walk(loop)
        if isinstance(node, ast.Assign)
        and not isinstance(node.value, ast.Constant)
        and any(isinstance(part, ast.Slice) for each in node.targets for part in ast.walk(each))
    ]
    assert not copies


def test_loops_are_compiled_by_one_decorator():
    """Whose code on disk is read without the tables of the compiler."""
    own = SOURCE / "_compiling.py"
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    using = {path for path, text in texts.items() if "njit(" in text}
    assert len(using) > 10
    direct = {path for path in using - {own} if "fenchel._compiling import" not in texts[path]}
    assert not direct


KNOWN_TEXTS = {"SPLITTING", "base", "rule", "str(path)", "text", "twice[0]", ""}


def test_what_was_given_is_told_on_one_line():
    """An array has line breaks in its ``repr``: messages show values by ``shown``."""
    found = {
        f"{path.relative_to(SOURCE)}: {what}"
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] not in {"_validation.py", "testing"}
        for what in re.findall(r"got \{([^{}]*)!r\}", path.read_text(encoding="utf-8"))
        if what not in KNOWN_TEXTS
    }
    assert not found


PASSES = r"in_threads\(|locks\.(map|sum)\("


def products_in_passes(tree: ast.Module) -> Iterator[int]:
    """Lines of ``@`` in what is given to passes over rows and to threads."""
    for scope in ast.walk(tree):
        if not isinstance(scope, (ast.FunctionDef, ast.Module)):
            continue
        nested = {node.name: node for node in scope.body if isinstance(node, ast.FunctionDef)}
        for call in (node for node in ast.walk(scope) if isinstance(node, ast.Call)):
            if not re.search(PASSES, ast.unparse(call.func) + "("):
                continue
            tasks = [nested.get(getattr(each, "id", ""), each) for each in call.args[:1]]
            for node in (inner for task in tasks for inner in ast.walk(task)):
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                    yield node.lineno


def test_products_in_passes_let_other_threads_run():
    """They are ``np.dot``: ``@`` holds Python's lock where its result has few numbers."""
    source = "def f():\n    def task(rows):\n        return a @ b\n    blocks.sum(task)\n"
    assert list(products_in_passes(ast.parse(source))) == [3]
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    passing = {path: text for path, text in texts.items() if re.search(PASSES, text)}
    assert len(passing) > 20
    found = {
        f"{path.relative_to(SOURCE)}:{line}"
        for path, text in passing.items()
        for line in products_in_passes(ast.parse(text))
    }
    assert not found
