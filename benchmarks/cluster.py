"""A local cluster of two workers against two threads of one process, on the same rows."""

from __future__ import annotations

from benchmarks.harness import Row, in_process

ALLOWED = 1.5
_PAIRS = """
import json, time
from statistics import median
import dask, dask.array as da, numpy as np
from dask.distributed import Client, LocalCluster
from threadpoolctl import threadpool_limits
from fenchel import QuantileRegressor
from fenchel.dask import DaskQuantileRegressor
from fenchel.kernels import Gaussian

n, parts, pairs = {n}, 8, {pairs}
settings = dict(levels=[0.1, 0.5, 0.9], kernel=Gaussian(4.0), alpha=1e-4)
small = dict(n_workers=2, threads_per_worker=1, dashboard_address=":0")


def chunk(k):
    random = np.random.default_rng(k)
    X = random.uniform(size=(n // parts, 4))
    noise = random.standard_normal(len(X)) * (0.2 + X[:, 1])
    return np.column_stack([X, np.sin(6 * X[:, 0]) + noise])


with LocalCluster(**small) as cluster, Client(cluster) as client, threadpool_limits(2):
    chunks = [dask.delayed(chunk)(k) for k in range(parts)]
    both = da.concatenate([da.from_delayed(c, (n // parts, 5), dtype=float) for c in chunks])
    data = both[:, :4].persist(), both[:, 4].persist()
    X, y = dask.compute(*data)
    seconds = dict(threads=[], dask=[])
    for turn in range(pairs + 1):  # the first is not counted
        for name, model, rows in (
            ("threads", QuantileRegressor(**settings), (X, y)),
            ("dask", DaskQuantileRegressor(**settings), data),
        ):
            started = time.perf_counter()
            model.fit(*rows)
            assert model.status_.converged, model.status_.message
            seconds[name].append(time.perf_counter() - started)
            rank = model.feature_map_.rank_
ratio = median(a / b for a, b in zip(seconds["dask"][1:], seconds["threads"][1:]))
found = dict(ratio=ratio, rank=rank)
print(json.dumps(found | dict((name, median(each[1:])) for name, each in seconds.items())))
"""


def against_threads(slow: bool) -> list[Row]:
    """Two workers of one thread, and losses on the client's two, against two threads."""
    rows = []
    for n in (1_000_000, 10_000_000) if slow else (1_000_000,):
        found = in_process(_PAIRS.format(n=n, pairs=3))
        note = f"{found['dask']:.1f} s, threads {found['threads']:.1f} s, rank {found['rank']}"
        case, ratio = f"3 levels, n={n}, Dask on 2 workers / 2 threads", found["ratio"]
        rows.append(Row(case, ratio, "x", f"<= {ALLOWED} x", ratio <= ALLOWED, note))
    return rows
