"""A part of every attack, with the seed of the week."""

from __future__ import annotations

import pytest

from attacks import attacks, seed_of_the_week

ATTACKS = attacks()
SHARES = 4  # of the tries of one attack, so that they run beside each other


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_succeeds(name, share):
    module, seed = ATTACKS[name], SHARES * seed_of_the_week() + share
    outcome = module.attack(-(-module.IN_CI // SHARES), seed)
    assert outcome.tried > 0
    assert not outcome.failures, f"seed {seed}:\n" + "\n".join(outcome.failures)
