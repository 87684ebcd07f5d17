"""What a newcomer finds by typing a name, a dot, or a question mark."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression

import fenchel
from fenchel import ConformalRegressor, KernelRidge, PathSearchCV, QuantileRegressor

ROOMS = [name for name in fenchel.__all__ if inspect.ismodule(getattr(fenchel, name))]
X = np.linspace(-1.0, 1.0, 40)[:, None]
Y = np.sin(3.0 * X[:, 0]) + np.random.default_rng(0).normal(size=40) * 0.1


def public_classes():
    for room in ROOMS:
        module = importlib.import_module(f"fenchel.{room}")
        for name in module.__all__:
            if inspect.isclass(getattr(module, name)):
                yield room, name


def test_all_rooms_are_looked_at():
    assert {"regression", "distributions", "solvers", "kernels"} <= set(ROOMS)


@pytest.mark.parametrize(("room", "name"), list(public_classes()))
def test_each_class_is_reached_from_the_root_or_its_room_is_named(room, name):
    if name in fenchel.__all__:
        assert getattr(fenchel, name) is getattr(getattr(fenchel, room), name)
        return
    with pytest.raises(AttributeError, match=rf"it is .*\.{name}$") as caught:
        getattr(fenchel, name)
    homes = str(caught.value).split("it is ")[1].split(" or ")
    assert f"fenchel.{room}.{name}" in homes


def test_names_that_are_nowhere_are_refused_shortly():
    with pytest.raises(AttributeError, match=r"no attribute 'Nowhere'$"):
        _ = fenchel.Nowhere
    assert not hasattr(fenchel, "_private")


def test_names_are_looked_for_in_sources_that_are_read_once(monkeypatch):
    """As skops does with hundreds of names, which took seconds."""
    opened = []
    read = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda *a, **k: opened.append(a) or read(*a, **k))
    fenchel._names_in.cache_clear()
    assert not any(hasattr(fenchel, f"nowhere_{k}") for k in range(50))
    assert 0 < len(opened) <= len(ROOMS)


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_dir_holds_what_is_public_and_nothing_else(room):
    module = importlib.import_module(f"fenchel.{room}".rstrip("."))
    listed = {name for name in dir(module) if not name.startswith("__")}
    assert listed == set(module.__all__) - {"__version__"}


@pytest.mark.parametrize(("room", "name"), list(public_classes()))
def test_signatures_show_parameters(room, name):
    kind = getattr(importlib.import_module(f"fenchel.{room}"), name)
    if not issubclass(kind, BaseEstimator):
        return
    methods = [kind, *(m for k, m in inspect.getmembers(kind) if k.startswith("predict"))]
    for method in methods:
        kinds = {p.kind for p in inspect.signature(method).parameters.values()}
        assert not kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


def test_signatures_of_the_first_estimators_have_types():
    for name in ("QuantileRegressor", "ExpectileRegressor", "SVR", "KernelRidge"):
        for parameter in inspect.signature(getattr(fenchel, name)).parameters.values():
            assert "Any" not in str(parameter.annotation).split("[")[0], (name, parameter)
            assert parameter.default is not inspect.Parameter.empty


@pytest.mark.slow
def test_notebooks_lead_with_what_came_out():
    model = QuantileRegressor([0.1, 0.9])
    assert "Certificate" not in model._repr_html_()
    model.fit(X, Y)
    shown = model._repr_mimebundle_()["text/html"]
    assert shown[:200] == model._repr_html_()[:200]
    table = shown[: shown.index("</table>")]
    for wanted in ("WithRanks(", f"{model.certificate_.relative_gap:.1e}"):
        assert wanted in table
    assert f"held-out loss {model.learned_.criterion:.3f}" in table
    assert "sk-container-id" in shown  # scikit-learn's diagram follows
    assert "held-out" not in QuantileRegressor(learn=False).fit(X, Y)._repr_html_()
    assert "Kernel<" not in fenchel.Ridge().fit(X, Y)._repr_html_()


def test_notebooks_say_where_a_fit_ended_early():
    with pytest.warns(UserWarning, match="converge|certificate|stopped|max_time"):
        model = QuantileRegressor(0.5, learn=False, max_iter=1, solver="fista").fit(X, Y)
    assert model.status_.message.split()[0] in model._repr_html_()


@pytest.mark.parametrize(
    ("model", "lines"),
    [
        (PathSearchCV(KernelRidge(), {"alpha": 3}, cv=4, verbose=1), 4),
        (ConformalRegressor(LinearRegression(), method="cv+", cv=5, verbose=1), 5),
        (ConformalRegressor(LinearRegression(), method="jackknife+", verbose=1), 20),
    ],
)
def test_searches_and_calibrations_say_how_far_they_are(model, lines, capsys):
    model.fit(X, Y)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == lines
    assert printed[0].startswith(f"[{type(model).__name__}]")
    assert "s left" in printed[0]
    assert " of " in printed[-1]
    assert "left" not in printed[-1]
    model.set_params(verbose=0).fit(X, Y)
    assert capsys.readouterr().out == ""
