"""The page of the guide on how fits of many rows grow, from what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.growth import (
    Growth,
    fitted,
    terms_of_client,
    terms_of_file,
    terms_of_rows,
    terms_of_workers,
)

FAR = {"rows": 100_000_000, "rank": 64, "levels": 5}
DISK, NETWORK = 1e9, 1e9  # bytes a second
ROUND = 0.03  # seconds of a round of messages
_PAGE = Path(__file__).with_name("growth_page.md")


def page(found: dict[str, Any]) -> str:
    """The page in Markdown."""
    files, workers = found["files"], found["workers"]
    of_files = fitted(files, terms_of_file, "cpu")
    one = len({case["rows"] for case in workers}) == 1
    of_client = fitted(workers, terms_of_rows if one else terms_of_client, "cpu")
    of_workers = fitted(workers, terms_of_workers, "of_workers")
    base = workers[0]
    return _PAGE.read_text(encoding="utf-8").format(
        **{name: found["machine"][name] for name in ("cores", "processor", "date")},
        loaded=f" {found['note']}" if found.get("note") else "",
        files="\n".join(_line_of_file(case, of_files) for case in files),
        file_coefficients=_coefficients(of_files),
        base=f"{base['levels']} levels, rank {base['rank']}",
        base_levels=base["levels"],
        workers="\n".join(_line_of_workers(case, of_client, of_workers) for case in workers),
        client_coefficients=_coefficients(of_client),
        worker_coefficients=_coefficients(of_workers),
        round=f"{1000 * ROUND:g}",
        disk=f"{DISK / 1e9:g}",
        network=f"{NETWORK / 1e9:g}",
        factor=round(FAR["rows"] / max(case["rows"] for case in files)),
        **_far(found, of_files, of_client, of_workers),
    )


def _line_of_file(case: dict[str, Any], formula: Growth) -> str:
    n, r, p = case["rows"], case["rank"], case["levels"]
    passes = case["read"] / (8 * n * r)
    said = formula(terms_of_file(case))
    return (
        f"| {n} | {r} | {p} | {case['cpu']:.2f} | {said:.2f} | {case['read'] / 1e9:.2f} GB | "
        f"{passes:.0f} | {case['memory'] / 2**30:.2f} GiB |"
    )


def _line_of_workers(case: dict[str, Any], of_client: Growth, of_workers: Growth) -> str:
    client, workers = of_client(terms_of_client(case)), of_workers(terms_of_workers(case))
    return (
        f"| {case['rows']} | {case['workers']} | {case['cpu']:.2f} | {client:.2f} | "
        f"{case['of_workers']:.2f} | {workers:.2f} | {case['rounds']} | "
        f"{case['moved'] / 1e9:.2f} GB | {case['seconds']:.1f} |"
    )


def _coefficients(formula: Growth) -> str:
    cells = [f"{c:.2g} s" for c in formula.coefficients]
    return f"| {' | '.join(cells)} | {100 * formula.error:.0f} % |"


def _far(
    found: dict[str, Any], of_files: Growth, of_client: Growth, of_workers: Growth
) -> dict[str, Any]:
    """What the formulas say of the fit that is far."""
    files, workers = found["files"], found["workers"]
    n, r, p = FAR["rows"], FAR["rank"], FAR["levels"]
    base, n_workers = workers[0], 16
    passes = max(case["read"] / (8 * case["rows"] * case["rank"]) for case in files)
    moved = max(case["moved"] / (case["rows"] * case["levels"]) for case in workers)
    rounds = max(case["rounds"] for case in workers)
    size, small = (
        of_files(terms_of_file({**case, "rows": 1.0})) - of_files.coefficients[0]
        for case in (FAR, base)
    )
    first, own = of_client.coefficients
    each, shared = of_workers.coefficients
    client = first + n * own * p / base["levels"]
    dask = client + each + n * shared * (size / small) / n_workers + rounds * ROUND
    return {
        "far_rank": r,
        "far_levels": p,
        "far_workers": n_workers,
        "file_hours": _time(of_files(terms_of_file(FAR))),
        "dask_hours": _time(dask),
        "client_hours": _time(client),
        "disk_bytes": f"{passes * 8 * n * r / 1e12:.1f}",
        "disk_hours": _time(passes * 8 * n * r / DISK),
        "network_bytes": f"{moved * n * p / 1e12:.1f}",
        "network_hours": _time(moved * n * p / NETWORK),
        "feature_bytes": f"{8 * n * r / 1e9:.0f}",
        "worker_bytes": f"{8 * n * (r + 10) / n_workers / 1e9:.1f}",
        "client_bytes": f"{8 * 8 * n * p / 1e9:.0f}",
    }


def _time(seconds: float) -> str:
    """Two digits of minutes or hours."""
    if seconds < 3600:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"
