"""A part of every attack, with the seed of the week."""

from __future__ import annotations

import pytest

from attacks import attacks, seed_of_the_week

ATTACKS = attacks()
# Of the tries of one attack, so that they run beside each other; an attack may say otherwise.
SHARES = {name: getattr(each, "SHARES", 8) for name, each in ATTACKS.items()}
PARTS = [
    pytest.param(name, i, marks=[pytest.mark.slow] if i or shares == 1 else [])
    for name, shares in SHARES.items()
    for i in range(shares)
]


@pytest.mark.parametrize(("name", "share"), PARTS)
def test_no_attack_succeeds(name, share):
    module, shares = ATTACKS[name], SHARES[name]
    seed = shares * seed_of_the_week() + share
    outcome = module.attack(-(-module.IN_CI // shares), seed)
    assert outcome.tried > 0
    assert not outcome.failures, f"seed {seed}:\n" + "\n".join(outcome.failures)
