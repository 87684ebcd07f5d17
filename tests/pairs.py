"""Cases that hold every pair of values, where all combinations would say little more."""

from __future__ import annotations

from itertools import combinations, product


def pairs(*choices):
    """Cases, one value of each choice, in which any two values of two choices meet.

    >>> pairs("ab", [0, 1], [False, True])
    [('a', 0, False), ('a', 1, True), ('b', 0, True), ('b', 1, False)]
    """
    choices = [list(choice) for choice in choices]
    cases = {
        case: set(combinations(enumerate(case), 2))
        for case in product(*(range(len(choice)) for choice in choices))
    }
    missing, chosen = set().union(*cases.values()), []
    while missing:
        best = max(cases, key=lambda case: len(cases[case] & missing))
        missing -= cases[best]
        chosen.append(best)
    return [tuple(c[i] for c, i in zip(choices, case, strict=True)) for case in sorted(chosen)]
