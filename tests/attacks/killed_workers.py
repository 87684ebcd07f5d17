"""Workers of a cluster that are killed at random moments of fits.

Each fit must end, with a gap below its tolerance, and its objective must be within the gaps of
that of the same rows fitted in memory.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import threading
import time
from typing import Any

import numpy as np

from attacks import Outcome
from fenchel import QuantileRegressor
from fenchel.kernels import Gaussian

IN_CI, IN_FULL = 2, 20
SHARES = 1  # a cluster and its imports cost more than a fit
_ROWS, _PARTS, _WORKERS = 20_000, 6, 2
_SETTINGS: dict[str, Any] = {"levels": [0.1, 0.5, 0.9], "kernel": Gaussian(0.7), "alpha": 1e-3}


def rows_of(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets."""
    random = np.random.default_rng(seed)
    X = random.uniform(size=(_ROWS, 2))
    return X, np.sin(6 * X[:, 0]) + random.standard_normal(_ROWS) * (0.2 + X[:, 1])


def living_workers(cluster: Any, client: Any, killed: int) -> list[int]:
    """Numbers of the processes of all workers, once the one that was killed is replaced."""
    deadline = time.monotonic() + 120.0
    while time.monotonic() < deadline:
        nannies = list(cluster.workers.values())
        found = [nanny.pid for nanny in nannies]
        # a process that is killed before its worker has registered is not replaced
        ready = {nanny.worker_address for nanny in nannies} == set(client.nthreads())
        if ready and len(found) == _WORKERS and None not in found and killed not in found:
            return found
        time.sleep(0.2)
    raise TimeoutError("the worker that was killed has not been replaced in two minutes")


def attack(count: int, seed: int) -> Outcome:
    """Kill one of two workers in each of ``count`` fits."""
    outcome = Outcome()
    if importlib.util.find_spec("distributed") is None:
        outcome.counts["left out: there is no Dask"] = count
        return outcome
    import dask.array as da
    from distributed import Client, LocalCluster

    from fenchel.dask import DaskQuantileRegressor

    random = np.random.default_rng(seed)
    X, y = rows_of(seed)
    local = QuantileRegressor(**_SETTINGS).fit(X, y)
    size = -(-_ROWS // _PARTS)
    data = da.from_array(X, (size, 2)), da.from_array(y, (size,))
    options = {"dashboard_address": ":0", "silence_logs": "CRITICAL"}
    with (
        LocalCluster(n_workers=_WORKERS, threads_per_worker=1, **options) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        start = time.monotonic()
        DaskQuantileRegressor(**_SETTINGS, client=client).fit(*data)
        seconds = time.monotonic() - start
        victim = 0
        for k in range(count):
            try:
                living = living_workers(cluster, client, victim)
            except TimeoutError as error:  # other attacks are still to come
                outcome.failures.append(f"try {k}: {error}")
                break
            moment, victim = random.uniform(0.0, seconds), int(random.choice(living))
            timer = threading.Timer(moment, os.kill, [victim, signal.SIGKILL])
            timer.start()
            label = f"try {k}, worker killed after {moment:.2f} of {seconds:.2f} s"
            try:
                model = DaskQuantileRegressor(**_SETTINGS, client=client).fit(*data)
            except Exception as error:
                outcome.counts["failed"] += 1
                outcome.failures.append(f"{label}: {type(error).__name__}: {error}")
                continue
            during = timer.finished.is_set()
            timer.join()
            outcome.counts["killed in the fit" if during else "killed after the fit"] += 1
            found = model.certificate_
            apart = abs(found.primal - local.certificate_.primal)
            bound = max(found.gap, local.certificate_.gap) + 1e-12
            if not (model.status_.converged and found.relative_gap <= 1e-6 and apart <= bound):
                outcome.failures.append(f"{label}: gap {found.relative_gap:.1e}, off {apart:.1e}")
    return outcome


__all__ = ["IN_CI", "IN_FULL", "SHARES", "attack"]
