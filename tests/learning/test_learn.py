"""What is learned on planted data, and what must not change it."""

from __future__ import annotations

from dataclasses import replace
from threading import get_ident

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from fenchel.kernels import Gaussian, Linear, Matern, is_open, opened
from fenchel.learning import Data, Learning, criterion, learn, unit_of_strength
from fenchel.losses import Pinball, Squared, SquaredPinball

OPTIONS = Learning(n_rows=240, max_evaluations=10)
ALONE = np.eye(1)


def planted(n=240, seed=0, loss=None, coupling=ALONE):
    """A function of the first two of five columns in different units."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) * [1.0, 10.0, 0.1, 1.0, 100.0]
    y = np.sin(2.0 * X[:, :1]) + (X[:, 1:2] / 10.0) ** 2 + 0.1 * rng.normal(size=(n, 1))
    return Data(X, y, np.ones(n), loss or Pinball(0.5), coupling, True)


@pytest.mark.parametrize(
    ("loss", "coupling"),
    [
        (Pinball(0.5), ALONE),
        (Squared(), ALONE),
        (SquaredPinball(0.8), ALONE),
        (Pinball([0.1, 0.5, 0.9]), np.eye(3)),
        (Pinball([0.1, 0.5, 0.9]), np.linalg.cholesky(0.2 * np.eye(3) + 0.8)),
    ],
    ids=["median", "squared", "expectile", "levels", "coupled levels"],
)
def test_idle_features_are_found(loss, coupling):
    data = planted(loss=loss, coupling=coupling)
    found = learn(data, [Matern()], None, OPTIONS)
    widths = found.kernel.length_scale / data.X.std(axis=0)
    assert widths[2:].min() > 2.0 * widths[:2].max()
    assert found.criterion < 0.7 * found.history[0]
    assert not is_open(found.kernel)
    assert found.kernel.theta.size == 0


def test_the_better_kernel_is_taken():
    """Of a kernel that sees the columns that matter, and one that is a line."""
    data = planted()
    found = learn(data, [0.5 * Linear(), Gaussian()], None, OPTIONS)
    assert isinstance(found.kernel, Gaussian)


@pytest.mark.slow
def test_the_first_kernel_stays_where_another_is_as_good():
    """On much noise one smoothness is as good as the other."""
    kernels = [Matern(nu=1.5), Matern(nu=2.5)]
    data = planted()
    noise = 5.0 * np.random.default_rng(1).normal(size=(240, 1))
    data = replace(data, targets=data.targets + noise)
    assert learn(data, kernels, None, OPTIONS).kernel.nu == 1.5
    assert learn(data, kernels[::-1], None, OPTIONS).kernel.nu == 2.5


def test_shared_length_scales_have_one_factor():
    """In units of the columns, a constant one among them."""
    data = planted(loss=Squared())
    X = np.column_stack([np.ones(240), data.X])
    kernel = learn(replace(data, X=X), [Gaussian("shared")], None, OPTIONS).kernel
    factors = kernel.length_scale[1:] / data.X.std(axis=0)
    np.testing.assert_allclose(factors, factors[0], rtol=1e-9)
    start = opened(Gaussian("shared"), X).length_scale[1:] / data.X.std(axis=0)
    assert abs(np.log(factors[0] / start[0])) > 0.03


def test_alpha_that_is_given_stays():
    assert learn(planted(), [Matern()], 0.02, OPTIONS).alpha == 0.02


def test_numbers_that_are_given_stay():
    kernel = Matern([1.0, 10.0, 0.1, 1.0, 100.0])
    found = learn(planted(), [kernel], None, OPTIONS)
    np.testing.assert_array_equal(found.kernel.length_scale, kernel.length_scale)
    assert found.alpha > 0.0


@pytest.mark.slow
def test_order_and_repetitions_do_not_matter():
    data = planted()
    rng = np.random.default_rng(1)
    counts, order = rng.integers(1, 3, len(data.X)), rng.permutation(len(data.X))
    weighted = Data(
        data.X[order], data.targets[order], counts[order].astype(float), data.loss, ALONE, True
    )
    X, y = (np.repeat(each, counts, axis=0) for each in (data.X, data.targets))
    repeated = Data(X, y, np.ones(len(X)), data.loss, ALONE, True)
    one, other = (learn(each, [Matern()], None, OPTIONS) for each in (weighted, repeated))
    np.testing.assert_array_equal(one.kernel.length_scale, other.kernel.length_scale)
    assert one.alpha == pytest.approx(other.alpha, rel=1e-12)
    assert one.criterion == pytest.approx(other.criterion, rel=1e-9)


@pytest.mark.slow
def test_units_of_features_and_targets_do_not_matter():
    data = planted()
    scales = np.array([8.0, 0.25, 1024.0, 1.0, 2.0])
    other = Data(data.X * scales, 16.0 * data.targets, data.weight, data.loss, ALONE, True)
    one, two = (learn(each, [Matern()], None, OPTIONS) for each in (data, other))
    np.testing.assert_allclose(
        two.kernel.length_scale, scales * one.kernel.length_scale, rtol=1e-9
    )
    assert two.criterion == pytest.approx(one.criterion, rel=1e-6)
    # the loss has the unit of targets, and its square the square
    assert two.alpha == pytest.approx(one.alpha / 16.0, rel=1e-6)


def test_two_rows_teach_nothing():
    assert learn(planted(2), [Matern()], None, OPTIONS) is None


def test_constant_targets_teach_nothing():
    data = planted()
    still = Data(data.X, np.ones_like(data.targets), data.weight, data.loss, ALONE, True)
    assert learn(still, [Matern()], None, OPTIONS) is None


def test_a_callback_ends_it_with_the_best_so_far():
    calls = []

    def stop(progress):
        calls.append(progress)
        return len(calls) == 3

    found = learn(planted(), [Matern()], None, OPTIONS, stop)
    assert len(calls) == 3 == len(found.history)
    assert found.criterion == min(found.history)


def test_unit_of_strength():
    """Mean loss over mean square around the best constant."""
    y = np.array([[0.0], [2.0], [4.0]])
    weight = np.array([1.0, 2.0, 1.0])
    assert unit_of_strength(Squared(), y, weight) == pytest.approx(0.5)
    assert unit_of_strength(Pinball(0.5), y, weight) == pytest.approx(0.5 * 1.0 / 2.0)
    assert unit_of_strength(Squared(), np.ones((3, 1)), weight) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("loss", [Pinball([0.1, 0.5, 0.9]), Squared()], ids=["levels", "squared"])
def test_any_number_of_threads_learns_the_same_bits(loss, monkeypatch):
    data = planted(loss=loss, coupling=np.eye(loss.n_outputs or 1))
    evaluate, threads = criterion._Fold.evaluate, set()

    def watched(*given):
        threads.add(get_ident())
        return evaluate(*given)

    monkeypatch.setattr(criterion._Fold, "evaluate", watched)
    found = []
    for number in (1, 2, 3):
        with threadpool_limits(number, user_api="blas"):
            learned = learn(data, [Matern()], None, OPTIONS)
        found.append([*learned.history, learned.alpha, *learned.kernel.length_scale])
    assert found[0] == found[1] == found[2]
    assert len(threads) > 1


@pytest.mark.slow
def test_many_rows_end_with_a_descent_on_more_of_them():
    """0.4 of the distinct rows; and a number that is given is kept to."""
    data, brief = planted(4000, loss=Squared()), {"max_evaluations": 3, "n_folds": 2}
    found = learn(data, [Matern()], None, Learning(**brief))
    assert found.n_rows == 1600
    short = learn(data, [Matern()], None, Learning(n_rows=1000, **brief))
    assert short.n_rows == 1000
    assert found.history[: len(short.history)] == short.history
    assert len(found.history) == len(short.history) + 3
    few = learn(planted(3000, loss=Squared()), [Matern()], None, Learning(**brief))
    assert few.n_rows == 1000


def test_repetitions_do_not_count_as_rows():
    data = planted(3000, loss=Squared())
    twice = replace(
        data,
        X=np.repeat(data.X, 2, axis=0),
        targets=np.repeat(data.targets, 2, axis=0),
        weight=np.ones(6000),
    )
    brief = Learning(max_evaluations=2, n_folds=2)
    assert learn(twice, [Matern()], None, brief).n_rows == 1000


@pytest.mark.slow
def test_coupled_smooth_losses_and_many_outputs_take_no_more_rows():
    """A last descent on them would take minutes."""
    brief = Learning(max_evaluations=1, n_folds=2)
    coupling = np.linalg.cholesky(0.2 * np.eye(3) + 0.8)
    coupled = planted(4000, loss=SquaredPinball([0.1, 0.5, 0.9]), coupling=coupling)
    assert learn(coupled, [Matern()], None, brief).n_rows == 500
    many = planted(4000, loss=Squared(), coupling=np.eye(4))
    many = replace(many, targets=np.repeat(many.targets, 4, axis=1))
    assert learn(many, [Matern()], None, brief).n_rows == 1000
