"""All designs against the matrix of their kernel, and wrong ones that are found."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.design import Design, Gram, Masked, Operator, Plain, Streamed
from fenchel.spool import Spool
from fenchel.testing import check_design

RNG = np.random.default_rng(0)
N = 11
FEW, MANY = RNG.normal(size=(N, 4)), RNG.normal(size=(N, 30))
FULL, THIN = RNG.normal(size=(3, 3)), RNG.normal(size=(3, 2))
MASK = (RNG.uniform(size=(N, 3)) < 0.7).astype(float)
WEIGHTS = RNG.uniform(size=(N, 3))


def on_disk(features):
    rows = Spool(features.shape[1])
    rows.append(features)
    return rows


DESIGNS = {
    "few features": lambda: Plain(FEW, FULL),
    "many features": lambda: Plain(MANY, THIN),
    "independent outputs": lambda: Plain(FEW, np.diag([1.0, 2.0, 0.5])),
    "one output": lambda: Plain(FEW, np.eye(1)),
    "gram": lambda: Gram(MANY @ MANY.T, FULL),
    "gram of low rank": lambda: Gram(FEW @ FEW.T, THIN),
    "gram, independent outputs": lambda: Gram(MANY @ MANY.T, np.diag([1.0, 2.0, 0.5])),
    "operator": lambda: Operator(RNG.normal(size=(N, 3, 7))),
    "on disk": lambda: Streamed(on_disk(FEW), FULL),
    "gaps": lambda: Masked(Plain(FEW, FULL), MASK),
    "weights": lambda: Masked(Plain(MANY, FULL), WEIGHTS),
    "gaps, gram": lambda: Masked(Gram(MANY @ MANY.T, FULL), MASK),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_contract(name):
    design = DESIGNS[name]()
    assert isinstance(design, Design)
    check_design(design)


def test_every_design_is_checked():
    kinds = {type(make()) for make in DESIGNS.values()}
    assert kinds == {Plain, Streamed, Gram, Operator, Masked}


@pytest.mark.parametrize("name", ["few features", "gram", "operator", "gaps"])
def test_blocks_change_nothing(name):
    whole, blocks = DESIGNS[name](), DESIGNS[name]()
    if name == "operator":
        blocks = Operator(whole.matrices)
    blocks.blocks.block_rows = 4
    assert [rows.start for rows in blocks.blocks] == [0, 4, 8]
    push = np.random.default_rng(1).normal(size=(N, 3))
    np.testing.assert_allclose(blocks.link(push), whole.link(push), rtol=1e-12, atol=1e-12)


def test_refusals_say_what_is_missing():
    assert "features='cholesky'" in DESIGNS["gram"]().refusal
    assert "a scalar kernel" in DESIGNS["operator"]().refusal
    assert "all outputs of all rows" in DESIGNS["gaps"]().refusal


class OneSided(Plain):
    def pull(self, rows, push):
        return 0.9 * super().pull(rows, push)


class Lopsided(Plain):
    def predict(self, rows, directions, out=None):
        values = super().predict(rows, directions)
        values = values * np.linspace(1.0, 2.0, self.n_rows)[rows, None]
        if out is not None:
            out[...] = values
        return values


class Stale(Plain):
    def subset(self, rows):
        return Plain(self.features[: len(rows)], self.coupling)


class Elsewhere(Plain):
    def from_subset(self, rows, weights):
        return 2.0 * weights


class Bent(Plain):
    def hessian(self, rows, jacobian):
        return 1.1 * super().hessian(rows, jacobian)


class Unequal(Plain):
    def diagonal(self):
        return np.ones(self.n_rows)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (OneSided, "squared_norm of a function is"),
        (Lopsided, "must be symmetric"),
        (Stale, "subset: values"),
        (Elsewhere, "from_subset: values"),
        (Bent, "hessian: entries"),
        (Unequal, "diagonal: entries"),
    ],
)
def test_wrong_designs_are_found(kind, sentence):
    with pytest.raises(AssertionError, match=rf"{kind.__name__}: .*{sentence}"):
        check_design(kind(FEW, FULL))
