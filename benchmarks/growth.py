"""``python -m benchmarks.growth``: how fits of many rows grow, and what 10⁸ rows would take.

Fits of a table in a file, and of collections of Dask on 1, 2 and 4 processes, at small sizes; a
formula that is linear in its coefficients; and the page of the guide that is written from both.
``--page`` writes the page anew from what was measured before.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from benchmarks.harness import in_process, machine

RESULTS, PAGE = Path("benchmarks/growth.json"), Path("docs/guide/growth.md")
LEVELS = {1: [0.5], 3: [0.1, 0.5, 0.9], 5: [0.1, 0.25, 0.5, 0.75, 0.9]}
BASE = {"rows": 200_000, "rank": 32, "levels": 3}
IN_FILES = [
    BASE,
    {**BASE, "rows": 100_000},
    {**BASE, "rows": 400_000},
    {**BASE, "rank": 16},
    {**BASE, "rank": 64},
    {**BASE, "levels": 1},
    {**BASE, "levels": 5},
]
ON_WORKERS = [{**BASE, "workers": w} for w in (1, 2, 4)] + [
    {**BASE, "rows": 100_000, "workers": 1},
    {**BASE, "rows": 800_000, "workers": 1},
    {**BASE, "rows": 800_000, "workers": 4},
]
_ROWS = """
import json, resource, tempfile, time
from pathlib import Path
import numpy as np
from fenchel import QuantileRegressor
from fenchel.kernels import Gaussian

n, r, levels = {rows}, {rank}, {levels}
settings = dict(
    levels=levels, kernel=Gaussian(1.5), alpha=1e-5, features="fourier", rank=r, max_iter=200
)
random = np.random.default_rng(0)
X = random.uniform(size=(n, 10))
y = np.sin(6 * X[:, 0]) + (0.2 + X[:, 1]) * random.standard_normal(n)
"""
_FILE = (
    _ROWS
    + """
def bytes_read():
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])


with tempfile.TemporaryDirectory() as folder:
    np.save(Path(folder) / "X.npy", X)
    QuantileRegressor(**settings).fit(X[:3000], y[:3000])  # compiled loops are loaded
    before, wall, cpu = bytes_read(), time.perf_counter(), time.process_time()
    model = QuantileRegressor(**settings).fit(Path(folder) / "X.npy", y)
    assert model.status_.converged, model.status_.message
    found = dict(
        seconds=time.perf_counter() - wall,
        cpu=time.process_time() - cpu,
        read=bytes_read() - before,
        memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )
print(json.dumps(found))
"""
)
_DASK = (
    _ROWS
    + """
import dask.array as da
from dask.distributed import Client, LocalCluster
from fenchel.dask import DaskQuantileRegressor, _cluster

counted = dict(rounds=0, moved=0)
submit, gathered = _cluster.Cluster.submit, _cluster.Cluster.gathered


def size(values):
    known = values if isinstance(values, (list, tuple)) else [values]
    return sum(each.nbytes for each in known if isinstance(each, np.ndarray))


def count_submit(self, function, *arguments):
    counted["moved"] += sum(map(size, arguments))
    return submit(self, function, *arguments)


def count_gathered(self, futures):
    found = gathered(self, futures)
    counted["rounds"] += 1
    counted["moved"] += sum(map(size, found))
    return found


def spent(number):
    import time
    import fenchel.dask

    return time.process_time()


def of_all(client):
    workers = client.scheduler_info(n_workers=-1)["workers"]
    each = [client.submit(spent, k, workers=[w], pure=False) for k, w in enumerate(workers)]
    return sum(client.gather(each))


_cluster.Cluster.submit, _cluster.Cluster.gathered = count_submit, count_gathered
if __name__ == "__main__":
    small = dict(n_workers={workers}, threads_per_worker=1, dashboard_address=":0")
    with LocalCluster(**small, silence_logs="CRITICAL") as cluster, Client(cluster) as client:
        data = da.from_array(X, (n // 8, 10)).persist(), da.from_array(y, n // 8).persist()
        model = DaskQuantileRegressor(**settings)
        started = of_all(client)
        wall, cpu = time.perf_counter(), time.process_time()
        model.fit(*data)
        assert model.status_.converged, model.status_.message
        found = dict(
            seconds=time.perf_counter() - wall,
            cpu=time.process_time() - cpu,
            of_workers=of_all(client) - started,
        )
    print(json.dumps(found | counted))
"""
)


class Growth(NamedTuple):
    """Coefficients, and the largest error of what they say, as a share."""

    coefficients: list[float]
    error: float

    def __call__(self, terms: list[float]) -> float:
        """What it says of a fit."""
        return float(np.dot(self.coefficients, terms))


def measured() -> dict[str, Any]:
    """All fits, each in a fresh process of one thread."""
    files, workers = [], []
    for case in IN_FILES:
        given = {**case, "levels": LEVELS[case["levels"]]}
        files.append({**case, **in_process(_filled(_FILE, given))})
        print(files[-1], flush=True)
    for case in ON_WORKERS:
        given = {**case, "levels": LEVELS[case["levels"]]}
        workers.append({**case, **in_process(_filled(_DASK, given))})
        print(workers[-1], flush=True)
    return {"machine": machine(), "files": files, "workers": workers}


def _filled(code: str, values: dict[str, Any]) -> str:
    for name, value in values.items():
        code = code.replace("{" + name + "}", repr(value))
    return code


def terms_of_file(case: dict[str, Any]) -> list[float]:
    """1, n, n p, n r p."""
    n, r, p = float(case["rows"]), case["rank"], case["levels"]
    return [1.0, n, n * p, n * r * p]


def terms_of_client(case: dict[str, Any]) -> list[float]:
    """1, n."""
    return [1.0, float(case["rows"])]


def terms_of_rows(case: dict[str, Any]) -> list[float]:
    """0, n: all of it grows, which is an upper bound where only one number of rows is known."""
    return [0.0, float(case["rows"])]


def terms_of_workers(case: dict[str, Any]) -> list[float]:
    """Workers, n."""
    return [float(case["workers"]), float(case["rows"])]


def fitted(cases: list[dict[str, Any]], terms: Any, name: str) -> Growth:
    """Coefficients that are not negative, of the least squares of relative errors."""
    matrix = np.array([terms(case) for case in cases])
    values = np.array([case[name] for case in cases])
    scaled = matrix / values[:, None]
    sizes = np.maximum(np.abs(scaled).max(axis=0), np.finfo(float).tiny)
    found = nnls(scaled / sizes, np.ones(len(values)))[0] / sizes
    return Growth(found.tolist(), float(np.abs(matrix @ found / values - 1.0).max()))


def main() -> int:
    """Measure unless told not to, and write the page."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    os.environ.update(dict.fromkeys(threads, "1"))
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--page", action="store_true", help="only the page, from the last run")
    if not parser.parse_args().page:
        RESULTS.write_text(json.dumps(measured(), indent=1) + "\n", encoding="utf-8")
    from benchmarks.growth_page import page

    PAGE.write_text(page(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
    print(f"written: {RESULTS}, {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
