"""Which gaps count as convergence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from fenchel.certificate import Certificate
from fenchel.solvers.loop import Iterate, Loop, credible_gap

EPS = np.finfo(float).eps


@dataclass
class Point:
    certificate: Certificate


@pytest.mark.parametrize(
    ("certificate", "expected"),
    [
        (Certificate(1.5, 1.0, 2.0), 0.25),
        (Certificate(1.0, 1.0, 2.0), 0.0),
        (Certificate(1.0, 1.0 + 4.0 * EPS, 2.0), 2.0 * EPS),  # rounding, and an error of its size
        (Certificate(1.0, 1.001, 2.0), np.inf),
        (Certificate(1.0, 1.001, 2.0, feasibility=1e-3), 5e-4),  # as far as conditions are missed
        (Certificate(0.0, 3968.0, 1.0), np.inf),
        (Certificate(1e15, 1e15 + 0.125, 1.0), 0.125),  # nothing is known of smaller gaps there
        (Certificate(np.nan, 1.0, 1.0), np.inf),
        (Certificate(1.0, np.nan, 1.0), np.inf),
        (Certificate(np.inf, 0.0, 1.0), np.inf),
        (Certificate(0.0, 1.0, 0.0), np.inf),
        (Certificate(0.0, 0.0, 0.0), 0.0),
        (Certificate(1.0, 0.0, 0.0), np.inf),
    ],
)
def test_what_a_gap_says(certificate, expected):
    assert credible_gap(certificate) == pytest.approx(expected, rel=1e-9, abs=1e-18)
    loop = Loop(1e-2)
    loop.take(0, Point(certificate))
    assert loop.reached == (expected <= 1e-2)
    assert loop.status("more").converged == (expected <= 1e-2)


def test_a_false_gap_does_not_hide_a_true_one():
    loop = Loop(1e-3)
    assert not loop.take(0, Point(Certificate(0.0, 3968.0, 1.0)))
    assert not loop.take(1, Point(Certificate(np.nan, 0.0, 1.0)))
    assert loop.take(2, Point(Certificate(1.0005, 1.0, 1.0)))
    assert loop.best.certificate.dual == 1.0


def test_an_interrupt_while_the_algorithm_is_closed_is_raised():
    def iterates():
        try:
            while True:
                yield Iterate(0, Point(Certificate(0.0, 0.0, 1.0)))
        finally:  # as if a signal arrived here
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Loop(1e-3).run(iterates())
