"""What mean and precision are governed by: the likelihood of rows that fits have not seen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import cauchy, norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import ConstantKernel

import fenchel
from fenchel.datasets import load_engel, load_mcycle
from fenchel.kernels import Gaussian, WithRanks
from fenchel.learning import Learning
from fenchel.learning.fold import Fold
from fenchel.learning.rows import rows_by_content
from fenchel.positive import (
    HeteroscedasticRegressor,
    LinearPart,
    NormalLikelihood,
    PSDPart,
    PSDProblem,
    solve,
)
from fenchel.positive._spread import _losses
from positive.test_two_kernels import roots

GRID = np.linspace(-2.7, 2.7, 200)
SHORT = Learning(max_evaluations=3, n_folds=2)


def noisy(deviation, n=300, seed=0, signal=np.sin):
    """Rows of one column with a known standard deviation."""
    random = np.random.default_rng(seed)
    x = random.uniform(-3.0, 3.0, n)
    return x[:, None], signal(x) + deviation(x) * random.standard_normal(n)


def step(x):
    return np.where(x > 0.0, 0.5, 0.1)


def line(x):
    return 0.1 + 0.15 * (x + 3.0)


def errors(model, X, y, deviation):
    """Of standard deviations, as shares."""
    _, std = model.fit(X, y).predict(GRID[:, None], return_std=True)
    return np.abs(std / deviation(GRID) - 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("deviation", "signal", "most"),
    [(step, np.sin, 0.4), (line, np.sin, 0.16), (step, np.zeros_like, 0.3)],
)
def test_standard_deviations_are_found(deviation, signal, most):
    # by the mean alone 0.80, 0.24 and 0.53
    found = [
        errors(HeteroscedasticRegressor(), *noisy(deviation, 300, seed, signal), deviation).mean()
        for seed in range(3)
    ]
    assert np.mean(found) < most


@pytest.mark.slow
def test_even_noise_has_one_deviation():
    model = HeteroscedasticRegressor()
    X, y = noisy(lambda x: np.full_like(x, 0.3))
    assert errors(model, X, y, lambda x: np.full_like(x, 0.3)).max() < 0.1
    assert isinstance(model.precision_kernel_, ConstantKernel)
    assert model.rank_ == 1
    _, std = model.predict([[-2.0], [0.0], [50.0]], return_std=True)
    np.testing.assert_allclose(std, std[0])


@pytest.mark.slow
def test_the_spread_of_engel_grows_and_its_mean_does():
    X, y = load_engel(return_X_y=True)
    grid = np.linspace(400.0, 2500.0, 100)[:, None]
    mean, std = HeteroscedasticRegressor().fit(X, y).predict(grid, return_std=True)
    assert std[-1] > 3.0 * std[0]
    assert np.all(np.diff(mean) > 0.0)


@pytest.mark.slow
def test_the_spread_may_have_columns_of_its_own():
    random = np.random.default_rng(0)
    X, new = (random.uniform(-1.0, 1.0, (n, 3)) for n in (400, 2000))
    y = np.sin(3.0 * X[:, 0]) + np.exp(1.5 * X[:, 1] - 1.0) * random.standard_normal(400)
    model = HeteroscedasticRegressor().fit(X, y)
    _, std = model.predict(new, return_std=True)
    assert np.corrcoef(np.log(std), new[:, 1])[0, 1] > 0.95
    own, other = model.precision_kernel_.k1.length_scale, model.kernel_.k1.length_scale
    assert own[1] < own[0]
    assert other[0] < other[1]


@pytest.mark.slow
def test_ranks_serve_where_a_column_has_a_long_tail_and_only_where_they_do_better():
    random = np.random.default_rng(1)
    x = np.exp(1.5 * random.normal(size=400))
    y = np.log1p(x) + (0.1 + 0.3 / (1.0 + x)) * random.normal(size=400)
    model = HeteroscedasticRegressor().fit(x[:, None], y)
    assert isinstance(model.kernel_.k1, WithRanks)
    new = np.exp(1.5 * np.linspace(-2.2, 2.2, 100))
    _, std = model.predict(new[:, None], return_std=True)
    ratio = std / (0.1 + 0.3 / (1.0 + new))
    assert 0.85 < ratio[:20].mean() < 1.15  # without ranks 0.82, and 1.32 further on
    assert ratio[60:80].mean() < 1.25
    without = HeteroscedasticRegressor(kernel=Gaussian("learned") + ConstantKernel(100.0, "fixed"))
    assert model.learned_.criterion < without.fit(x[:, None], y).learned_.criterion - 0.02
    _, far = model.predict([[1e6]], return_std=True)
    assert far < y.std()
    assert isinstance(
        HeteroscedasticRegressor().fit(*load_mcycle(return_X_y=True)).kernel_.k1, Gaussian
    )


@pytest.mark.slow
def test_what_is_given_is_obeyed():
    X, y = noisy(step, 80)
    fixed = {"alpha": 1e-3, "precision_strength": 7.0, "precision_kernel": Gaussian(0.7)}
    for name, value in fixed.items():
        model = HeteroscedasticRegressor(learn=SHORT, **{name: value}).fit(X, y)
        assert getattr(model, f"{name}_") == value
    model = HeteroscedasticRegressor(kernel=Gaussian(0.9), learn=SHORT).fit(X, y)
    assert model.kernel_ == model.precision_kernel_ == Gaussian(0.9)
    for rank in (None, 3):
        wide = HeteroscedasticRegressor(1e-4, kernel=Gaussian(2.0), precision_kernel=Gaussian(0.1))
        wide.set_params(precision_rank=rank).fit(X, y)
        found = len(wide.precision_model_.matrix_)
        assert found == 3 if rank else found > 10
    with pytest.raises(ValueError, match="precision_rank must be an integer >= 1 or None, got 0"):
        HeteroscedasticRegressor(precision_rank=0).fit(X, y)


def test_losses_are_those_of_a_mixture():
    random = np.random.default_rng(0)
    y, mean, std = random.normal(size=50), random.normal(size=50), np.exp(random.normal(size=50))
    expected = 0.9 * norm.pdf(y, mean, std) + 0.1 * cauchy.pdf(y)
    found = _losses(y, mean / std**2, std**-2.0, 0.1)
    np.testing.assert_allclose(found, -np.log(expected), rtol=1e-10)
    nowhere = _losses(y, mean, np.zeros(50), 0.1)  # without a precision
    np.testing.assert_allclose(nowhere, -np.log(0.1 * cauchy.pdf(y)), rtol=1e-10)


@pytest.mark.slow
def test_the_criterion_is_the_held_out_likelihood():
    X, y = noisy(line, 60)
    kernel = Gaussian(1.5)
    model = HeteroscedasticRegressor(kernel=kernel, learn=SHORT).fit(X, y)
    standard = ((y - y.mean()) / y.std())[:, None]
    rows = rows_by_content(X, standard, np.ones(60), 1000, 1).first(1000, 2)
    features, losses = roots(kernel, rows.X), []
    own_alpha = model.alpha_ * model.precision_strength_
    for fold in (Fold(rows, k) for k in range(2)):
        outer = fold.outer(features)
        problem = PSDProblem(
            NormalLikelihood(fold.outer(rows.targets)[:, 0], 1.0 / 9.0),
            [PSDPart(outer, own_alpha, 1e-4, np.array([0.0, 1.0]))],
            fold.weight,
            linear=[LinearPart(outer, model.alpha_, np.array([1.0, 0.0]))],
        )
        fit = solve(problem, tol=1e-8).model
        inner = features[fold.inside]
        theta = np.einsum("ij,jk,ik->i", inner, fit.matrices[0], inner) + 1.0 / 9.0
        held, mean = rows.targets[fold.inside, 0], inner @ fit.weights[0] / theta
        mixed = norm.pdf(held, mean, theta**-0.5) * (59.0 / 60.0) + cauchy.pdf(held) / 60.0
        losses.append(-np.log(mixed))
    expected = np.mean(np.concatenate(losses)) + np.log(y.std())
    assert model.learned_.in_nats
    assert model.learned_.criterion == pytest.approx(expected, abs=0.02)
    away = np.array(model.learned_.history) - (model.learned_.criterion - np.log(y.std()))
    assert np.abs(away).min() < 1e-12


@pytest.mark.slow
def test_one_row_far_out_does_not_decide():
    X, y = noisy(step, 300)
    plain = errors(HeteroscedasticRegressor(), X, y, step).mean()
    X, y = np.append(X, [[3.5]], axis=0), np.append(y, 12.0)
    assert errors(HeteroscedasticRegressor(), X, y, step).mean() < plain + 0.2


@pytest.mark.slow
def test_a_search_that_is_ended_keeps_the_best_so_far():
    X, y = noisy(step, 80)
    whole = HeteroscedasticRegressor(learn=SHORT).fit(X, y).learned_
    for at in (len(whole.history) - 2, 6):
        seen = []

        def end(progress, seen=seen, at=at):
            seen.append(progress.primal)
            return len(seen) == at

        with pytest.warns(ConvergenceWarning, match="the callback returned a true value"):
            model = HeteroscedasticRegressor(learn=SHORT, callback=end).fit(X, y)
        assert model.learned_.ended_early
        assert model.learned_.history == whole.history[:at]
        assert "the callback returned a true value" in model.learned_.message


@pytest.mark.slow
def test_what_was_chosen_goes_into_files_and_copies(tmp_path):
    X, y = noisy(lambda x: np.full_like(x, 0.3), 120)
    model = HeteroscedasticRegressor(learn=SHORT).fit(X, y)
    expected = model.predict_interval(X)
    same = fenchel.load(fenchel.save(model, tmp_path / "m.skops"))
    np.testing.assert_array_equal(same.predict_interval(X), expected)
    copy = model.with_learned().fit(X, y)
    np.testing.assert_array_equal(copy.predict_interval(X), expected)
    assert copy.learned_ is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the feature map of rank 200 leaves out:UserWarning")
@pytest.mark.parametrize("features", ["nystroem", "fourier", fenchel.features.Nystroem(rank=20)])
def test_other_features_learn_too(features):
    X, y = noisy(step, 120)
    model = HeteroscedasticRegressor(features=features, learn=SHORT).fit(X, y)
    _, std = model.predict([[-1.5], [1.5]], return_std=True)
    assert std[1] > 1.5 * std[0]
