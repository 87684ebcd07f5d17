"""A part of every attack, with the seed of the week."""

from __future__ import annotations

import pytest

from attacks import attacks, seed_of_the_week

ATTACKS = attacks()
SHARES = 4  # of the tries of one attack, so that they run beside each other


PARTS = [(name, i) for name, each in ATTACKS.items() for i in range(min(SHARES, each.IN_CI))]


@pytest.mark.parametrize(("name", "share"), PARTS)
def test_no_attack_succeeds(name, share):
    module, seed = ATTACKS[name], SHARES * seed_of_the_week() + share
    outcome = module.attack(-(-module.IN_CI // SHARES), seed)
    assert outcome.tried > 0
    assert not outcome.failures, f"seed {seed}:\n" + "\n".join(outcome.failures)
