"""What is printed, and what callbacks are told, while parameters are learned."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from fenchel import KernelRidge, QuantileRegressor

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(size=(60, 2))
Y = X[:, 0] + 0.1 * RANDOM.normal(size=60)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [QuantileRegressor, KernelRidge])
def test_verbose_says_what_learning_does(estimator, capsys):
    model = estimator(verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    n_learning = len(model.learned_.history)
    for k, (line, value) in enumerate(zip(lines, model.learned_.history, strict=False), start=1):
        start = f"[{estimator.__name__}] learning, evaluation {k}: held-out loss {value:.3f} "
        assert re.fullmatch(re.escape(start) + r"after \d+\.\d\d s", line)
    assert len(lines) == n_learning + len(model.history_)
    for line in lines[n_learning:]:
        assert line.startswith(f"[{estimator.__name__}] step ")
    assert "nan" not in "".join(lines)


@pytest.mark.slow
def test_callbacks_can_tell_learning_from_steps():
    seen = []
    model = QuantileRegressor(callback=seen.append).fit(X, Y)
    learning = [progress for progress in seen if progress.is_learning]
    assert [progress.primal for progress in learning] == model.learned_.history
    assert all(math.isnan(progress.relative_gap) for progress in learning)
    assert seen[len(learning) :] == model.history_
    plain = QuantileRegressor().fit(X, Y)
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
