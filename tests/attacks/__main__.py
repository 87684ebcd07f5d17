"""``make attack``: every attack at full size, with its counts."""

from __future__ import annotations

import argparse
import sys

from attacks import attacks, seed_of_the_week


def main() -> int:
    """Run the named attacks, all by default; exit 1 where one found something."""
    known = attacks()
    parser = argparse.ArgumentParser(prog="make attack", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(known)}; all by default")
    parser.add_argument("--count", type=int, help="tries of each; by default its own number")
    parser.add_argument("--seed", type=int, default=seed_of_the_week())
    arguments = parser.parse_args()
    failed = 0
    for name in arguments.names or list(known):
        module = known[name]
        outcome = module.attack(arguments.count or module.IN_FULL, arguments.seed)
        print(f"{name}: {outcome.tried} tries, seed {arguments.seed}")
        for what, number in outcome.counts.most_common():
            print(f"  {number:6d}  {what}")
        for line in outcome.failures:
            print(f"  FAILED  {line}")
        failed += len(outcome.failures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
