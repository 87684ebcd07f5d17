"""The dual learners against their pseudocode, row by row, and against batch solutions."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct

from fenchel import SVR, KernelRidge
from fenchel.kernels import Callable, Gaussian, Laplacian, Linear, Matern, Polynomial
from fenchel.online import OnlineQuadraticSVR, OnlineSVR

LEARNERS = [OnlineSVR, OnlineQuadraticSVR]
KERNELS = [
    Gaussian(0.8),
    Gaussian(np.array([0.5, 1.0, 2.0])),
    Laplacian(1.0),
    Matern(1.5),
    Linear(),
    Polynomial(degree=2, gain=0.2),
    0.5 * RBF(1.2) + Linear(),
    Callable(lambda X, Y: np.exp(-np.abs(X[:, None] - Y[None]).sum(axis=2))),
]


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.standard_normal((700, 3))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * random.standard_normal(700)
    return X, y, random.uniform(0.1, 3.0, 700)


def plain(kind, kernel, X, y, weight, orders, step=None, **given):
    """The pseudocode, one row and one kernel value after the other; returns all iterates."""
    p = {"C": 1.0, "epsilon": 0.1, "ones": 1.0, "budget": np.inf, "oldest": False} | given
    K = kernel(X) + p["ones"]
    up, down = np.zeros(len(X)), np.zeros(len(X))
    entered = []
    iterates = []
    t = 0
    for order in orders:
        for i in order:
            t += 1
            prediction = sum((up[s] - down[s]) * K[s, i] for s in entered)
            bend = 0.0 if kind is OnlineSVR else 1 / (2 * p["C"] * weight[i])
            bound = p["C"] * weight[i] if kind is OnlineSVR else np.inf
            size = (0.5 / (K[i, i] + bend) if step is None else step) * p.get("rate", lambda t: 1)(
                t
            )
            residual = y[i] - prediction - bend * (up[i] - down[i])
            first = min(max(size * (residual - p["epsilon"]), -up[i]), bound - up[i])
            second = min(max(size * (-residual - p["epsilon"]), -down[i]), bound - down[i])
            up[i] += first
            down[i] += second
            if (up[i] or down[i]) and i not in entered:
                entered.append(i)
            elif not (up[i] or down[i]) and i in entered:
                entered.remove(i)
            if len(entered) > p["budget"]:
                others = [s for s in entered if s != i]
                gone = (
                    others[0] if p["oldest"] else min(others, key=lambda s: abs(up[s] - down[s]))
                )
                entered.remove(gone)
                up[gone] = down[gone] = 0.0
            iterates.append(up - down)
    return np.array(iterates), entered


def scattered(model, X):
    """Coefficients at the rows of X."""
    found = np.zeros(len(X))
    for point, coefficient in zip(model.support_vectors_, model.dual_coef_, strict=True):
        (row,) = np.flatnonzero((point == X).all(axis=1))
        found[row] = coefficient
    return found


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("kind", LEARNERS)
def test_pseudocode(kind, kernel, data):
    X, y, weight = data
    X, y, weight = X[:120], y[:120], weight[:120]
    iterates, entered = plain(kind, kernel, X, y, weight, [range(120)])
    model = kind(kernel=kernel)
    for stop in (1, 2, 50, 120):
        last = getattr(model, "t_", 0)
        model.partial_fit(X[last:stop], y[last:stop], weight[last:stop])
        np.testing.assert_allclose(scattered(model, X), iterates[stop - 1], atol=1e-11)
    np.testing.assert_array_equal(model.support_vectors_, X[entered])
    expected = (kernel(X) + 1) @ iterates[-1]
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-10)
    np.testing.assert_allclose(model.intercept_, iterates[-1].sum(), atol=1e-12)
    assert 20 < len(entered) < 120 or kind is OnlineQuadraticSVR


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("schedule", ["inverse_sqrt", "inverse"])
def test_given_steps_that_fall_without_offset(kind, schedule, data):
    X, y, weight = (part[:100] for part in data)
    power = {"inverse_sqrt": 0.5, "inverse": 1.0}[schedule]
    kernel = Gaussian(1.0)
    iterates, _ = plain(
        kind,
        kernel,
        X,
        y,
        weight,
        [range(100)],
        0.7,
        C=0.4,
        epsilon=0.05,
        ones=0.0,
        rate=lambda t: (1 + (t - 1) / 30.0) ** -power,
    )
    model = kind(0.4, epsilon=0.05, kernel=kernel, step=0.7, schedule=schedule, delay=30.0)
    model.set_params(fit_intercept=False).partial_fit(X, y, weight)
    np.testing.assert_allclose(scattered(model, X), iterates[-1], atol=1e-11)
    assert model.intercept_ == 0.0
    if kind is OnlineSVR:
        assert np.any(np.abs(model.dual_coef_) == 0.4 * weight[np.abs(iterates[-1]) > 0])


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("average", [False, True, 150])
def test_epochs_come_back_to_the_same_coefficients(kind, average, data):
    X, y = data[0][:80], data[1][:80]
    kernel = Gaussian(0.7)
    random = np.random.RandomState(2)
    orders = [random.permutation(80) for _ in range(4)]
    iterates, entered = plain(kind, kernel, X, y, np.ones(80), orders, C=0.5, epsilon=0.2)
    model = kind(0.5, epsilon=0.2, kernel=kernel, n_epochs=4, random_state=2, average=average)
    model.fit(X, y)
    expected = iterates[int(average) - 1 :].mean(axis=0) if average else iterates[-1]
    np.testing.assert_allclose(scattered(model, X), expected, atol=1e-11)
    assert model.t_ == 320
    if not average:
        np.testing.assert_array_equal(model.support_vectors_, X[entered])
        assert len(entered) < np.count_nonzero(np.any(iterates != 0.0, axis=0))  # some left
    # and partial_fit goes on from there, with new points
    before = len(model.support_vectors_)
    model.partial_fit(X + 0.1, y)
    assert before < len(model.support_vectors_) <= before + 80


@pytest.mark.parametrize("kind", LEARNERS)
def test_average_over_blocks(kind, data):
    X, y, weight = (part[:100] for part in data)
    iterates, _ = plain(kind, Gaussian(1.0), X, y, weight, [range(100)])
    model = kind(kernel=Gaussian(1.0), average=True)
    for start in range(0, 100, 30):
        rows = slice(start, start + 30)
        model.partial_fit(X[rows], y[rows], weight[rows])
    np.testing.assert_allclose(scattered(model, X), iterates.mean(axis=0), atol=1e-11)


@pytest.mark.parametrize("kernel", [Gaussian(0.8), Laplacian(1.0), Linear()], ids=repr)
@pytest.mark.parametrize("parameters", [{}, {"budget": 60}, {"average": True}], ids=repr)
@pytest.mark.parametrize("kind", LEARNERS)
def test_blocks_of_any_size_give_the_same_model(kind, parameters, kernel, data):
    X, y, weight = data
    whole = kind(kernel=kernel, **parameters).partial_fit(X, y, weight)
    for size in (1, 13, 300):
        model = kind(kernel=kernel, **parameters)
        for i in range(0, 700, size):
            model.partial_fit(X[i : i + size], y[i : i + size], weight[i : i + size])
        np.testing.assert_array_equal(model.support_vectors_, whole.support_vectors_)
        np.testing.assert_allclose(model.dual_coef_, whole.dual_coef_, rtol=1e-9, atol=1e-11)
    once = kind(kernel=kernel, n_epochs=1, shuffle=False, **parameters).fit(X, y)
    single = kind(kernel=kernel, **parameters).partial_fit(X, y)
    np.testing.assert_array_equal(once.dual_coef_, single.dual_coef_)


@pytest.mark.parametrize("removal", ["smallest", "oldest"])
@pytest.mark.parametrize("kind", LEARNERS)
def test_budget(kind, removal, data):
    X, y, weight = (part[:150] for part in data)
    oldest = removal == "oldest"
    kernel = Gaussian(0.8)
    iterates, entered = plain(kind, kernel, X, y, weight, [range(150)], budget=25, oldest=oldest)
    model = kind(kernel=kernel, budget=25, removal=removal)
    for start in range(0, 150, 40):
        rows = slice(start, start + 40)
        model.partial_fit(X[rows], y[rows], weight[rows])
        assert len(model.support_vectors_) <= 25
    np.testing.assert_array_equal(model.support_vectors_, X[entered])
    np.testing.assert_allclose(scattered(model, X), iterates[-1], atol=1e-11)
    assert len(entered) == 25


def test_a_smaller_budget_is_met(data):
    X, y, _ = data
    model = OnlineSVR(kernel=Gaussian(0.8), epsilon=0.0).partial_fit(X[:100], y[:100])
    assert len(model.support_vectors_) == 100
    model.set_params(budget=10).partial_fit(X[100:101], y[100:101])
    assert len(model.support_vectors_) == 10
    np.testing.assert_array_equal(model.support_vectors_[-1], X[100])


@pytest.mark.parametrize("removal", ["smallest", "oldest"])
@pytest.mark.parametrize("kind", LEARNERS)
def test_budget_in_epochs(kind, removal, data):
    """A point that was removed and comes back is the newest, in the same block of rows too."""
    X, y, kernel, oldest = data[0][:60], data[1][:60], Gaussian(0.8), removal == "oldest"
    random = np.random.RandomState(1)
    orders = [random.permutation(60) for _ in range(3)]
    shape = {"budget": 20, "epsilon": 0.02}
    iterates, entered = plain(kind, kernel, X, y, np.ones(60), orders, oldest=oldest, **shape)
    model = kind(kernel=kernel, removal=removal, n_epochs=3, random_state=1, **shape)
    model.fit(X, y)
    np.testing.assert_array_equal(model.support_vectors_, X[entered])
    np.testing.assert_allclose(scattered(model, X), iterates[-1], atol=1e-11)


def test_a_view_of_the_points_stays_what_it_was(data):
    X, y, _ = data
    model = OnlineSVR(kernel=Gaussian(0.8), budget=40).partial_fit(X[:300], y[:300])
    points, values = model.support_vectors_, model.support_vectors_.copy()
    other = copy.copy(model)
    model.partial_fit(X[300:400], y[300:400])
    np.testing.assert_array_equal(points, values)
    assert not np.array_equal(model.support_vectors_, values)
    other.partial_fit(X[:300] + 1.0, y[:300])
    whole = OnlineSVR(kernel=Gaussian(0.8), budget=40).partial_fit(X[:400], y[:400])
    np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-10)


def test_a_shallow_copy_goes_its_own_way(data):
    X, y, _ = data
    model = OnlineSVR(kernel=Gaussian(0.8), epsilon=0.0)
    model.partial_fit(X[:65], y[:65]).partial_fit(X[65:70], y[65:70])  # the buffer has room now
    other = copy.copy(model)
    model.partial_fit(X[100:110], y[100:110])
    other.partial_fit(X[200:210], y[200:210])
    np.testing.assert_array_equal(model.support_vectors_, np.vstack([X[:70], X[100:110]]))
    np.testing.assert_array_equal(other.support_vectors_, np.vstack([X[:70], X[200:210]]))


# --- the batch solution -----------------------------------------------------------------------


@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize("kind", LEARNERS)
def test_epochs_converge_to_the_batch_solution(kind, ones, data):
    X, y = data[0][:60], data[1][:60]
    C, epsilon, n = 2.0, 0.1, 60
    kernel = Gaussian(0.7)
    quadratic = kind is OnlineQuadraticSVR
    batch = SVR(
        "squared_epsilon_insensitive" if quadratic else "epsilon_insensitive",
        epsilon=epsilon,
        kernel=RBF(0.7) + ConstantKernel(1.0) if ones else kernel,
        alpha=1 / ((2 if quadratic else 1) * C * n),
        learn=False,
        fit_intercept=False,
        tol=1e-10,
    ).fit(X, y)
    errors = []
    for n_epochs in (5, 1000):
        model = kind(C, epsilon=epsilon, kernel=kernel, n_epochs=n_epochs, fit_intercept=ones)
        errors.append(np.abs(model.fit(X, y).predict(X) - batch.predict(X)).max())
    assert errors[1] < 1e-5 < errors[0]
    found = np.flatnonzero(np.abs(scattered(model, X)) > 1e-6)
    strong = np.flatnonzero(np.abs(batch.predict(X) - y) > epsilon + 1e-4)
    assert set(strong) <= set(found)
    inside = np.flatnonzero(np.abs(batch.predict(X) - y) < epsilon - 1e-4)
    assert not set(inside) & set(found)


def test_quadratic_without_tube_is_kernel_ridge(data):
    X, y = data[0][:50], data[1][:50]
    C = 0.5
    model = OnlineQuadraticSVR(C, epsilon=0.0, kernel=Gaussian(1.0), n_epochs=400)
    model.set_params(fit_intercept=False).fit(X, y)
    ridge = KernelRidge(alpha=1 / (2 * C * 50), kernel=Gaussian(1.0), fit_intercept=False)
    np.testing.assert_allclose(model.predict(X), ridge.fit(X, y).predict(X), atol=1e-7)


# --- kernels ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LEARNERS)
def test_width_is_read_off_the_first_rows(kind, data):
    X, y, _ = data
    model = kind(kernel=Gaussian("median")).partial_fit(X[:100], y[:100])
    width = model.kernel_.length_scale
    distances = np.sqrt(((X[:100, None] - X[None, :100]) ** 2).sum(axis=2))
    np.testing.assert_allclose(width, np.median(distances[np.triu_indices(100, 1)]), rtol=1e-2)
    model.partial_fit(X[100:], y[100:])
    assert model.kernel_.length_scale == width
    same = kind(kernel=Gaussian(width)).partial_fit(X, y)
    np.testing.assert_allclose(model.predict(X), same.predict(X), atol=1e-10)


@pytest.mark.parametrize("kernel", [None, Laplacian(), 2.0 * Gaussian("median")], ids=repr)
def test_width_cannot_be_read_off_one_row(kernel, data):
    X, y, _ = data
    message = r"kernel must have a number as length_scale, .* n_samples = 1"
    with pytest.raises(ValueError, match=message):
        OnlineSVR(kernel=kernel).partial_fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="n_samples = 1"):
        OnlineSVR(kernel=kernel).partial_fit(X[:3], y[:3], [0.0, 1.0, 0.0])
    OnlineSVR(kernel=Linear()).partial_fit(X[:1], y[:1])


@pytest.mark.parametrize("far", [1e3, 1e7])
def test_gaussian_far_from_the_origin_keeps_its_digits(far, data):
    X, y, _ = data
    rows = np.round(X[:200], 6)
    near = OnlineSVR(kernel=Gaussian(0.8)).partial_fit(rows, y[:200])
    away = OnlineSVR(kernel=Gaussian(0.8)).partial_fit(rows + far, y[:200])
    np.testing.assert_allclose(away.predict(rows + far), near.predict(rows), atol=1e-7)
    # rows that lie so far apart that one product would lose digits
    spread = np.vstack([rows, rows + far])
    model = OnlineSVR(kernel=Gaussian(0.8)).partial_fit(spread, np.r_[y[:200], y[:200]])
    gram = Gaussian(0.8)(spread, model.support_vectors_)
    expected = gram @ model.dual_coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(spread), expected, atol=1e-10)
    iterates, _ = plain(
        OnlineSVR, Gaussian(0.8), spread, np.r_[y[:200], y[:200]], np.ones(400), [range(400)]
    )
    np.testing.assert_allclose(scattered(model, spread), iterates[-1], atol=1e-9)


# --- what is not allowed ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", LEARNERS)
def test_diverging_step_is_reported_and_nothing_is_lost(kind, data):
    X, y, _ = data
    parameters = {"C": 1e6, "kernel": Gaussian(3.0)}
    model = kind(**parameters).partial_fit(X[:100], y[:100])
    before = copy.deepcopy(vars(model))
    with pytest.raises(ValueError, match=r"^step=30 diverges at row \d+: .* k\(x, x\)") as caught:
        model.set_params(step=30).partial_fit(X[100:], y[100:])
    assert "\n" not in str(caught.value)
    model.set_params(step=None)
    assert set(vars(model)) == set(before)
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(model, name), value)
    with pytest.raises(ValueError, match="diverges"):
        model.set_params(step=30).fit(X, y)
    model.set_params(step=None).partial_fit(X[100:], y[100:])
    whole = kind(**parameters).partial_fit(X, y)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=1e-7)


def test_a_step_that_overflows_in_the_last_row():
    model = OnlineQuadraticSVR(1e300, kernel="linear", step=1e300)
    with pytest.raises(ValueError, match=r"step=1e\+300 diverges at row 0"):
        model.partial_fit([[1.0]], [1e100])
    assert not hasattr(model, "t_")


def test_steps_that_only_swing_between_bounds_are_no_error(data):
    X, y, _ = data
    model = OnlineSVR(0.1, kernel=Gaussian(0.5), step=1e6).partial_fit(X, y)
    assert set(np.abs(model.dual_coef_)) == {0.1}


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"C": 0.0}, ValueError, r"C must be a finite number > 0, got 0\.0"),
        ({"epsilon": -1.0}, ValueError, r"epsilon must be a finite number >= 0, got -1\.0"),
        ({"budget": 0}, ValueError, "budget must be an integer >= 1 or None, got 0"),
        ({"budget": 2.5}, TypeError, r"budget must be an integer >= 1 or None, got 2\.5"),
        ({"removal": "any"}, ValueError, r"removal must be one of .*, got 'any'"),
        ({"budget": 9, "average": True}, ValueError, "average must be False with a budget, got"),
        ({"kernel": "precomputed"}, ValueError, "kernel must be computed from rows, got 'pre"),
        ({"kernel": "gauss"}, ValueError, "kernel must be one of .*, got 'gauss'"),
    ],
)
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@pytest.mark.parametrize("kind", LEARNERS)
def test_parameters(kind, parameters, error, message, call, data):
    with pytest.raises(error, match=message):
        getattr(kind(**parameters), call)(*data[:2])


def test_no_support(data):
    X, _, _ = data
    model = OnlineSVR(epsilon=1.0).partial_fit(X, np.full(700, 0.5))
    assert model.support_vectors_.shape == (0, 3)
    np.testing.assert_array_equal(model.predict(X), np.zeros(700))


def test_a_point_at_the_origin_of_a_linear_kernel_is_nothing():
    model = OnlineSVR(kernel=DotProduct(0.0), fit_intercept=False)
    model.partial_fit([[0.0], [1.0]], [5.0, 1.0])
    np.testing.assert_allclose(model.dual_coef_, [0.45])  # half a step from 0 to 0.9
    np.testing.assert_array_equal(model.support_vectors_, [[1.0]])


def test_epochs_are_told(capsys):
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = OnlineSVR(n_epochs=3, verbose=1).fit(X, X[:, 0])
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in printed] == [
        f"[OnlineSVR] epoch {k}" for k in (1, 2, 3)
    ]
    assert f" {len(model.support_vectors_)} points after" in printed[-1]
    model.set_params(verbose=0).fit(X, X[:, 0])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("learner", LEARNERS)
def test_rows_that_are_no_points_are_not_kept(learner):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(200, 4)), random.normal(size=200)
    model = learner(kernel=Gaussian(0.5), epsilon=0.5, budget=10).partial_fit(X, y)
    inside = np.array([[0.123456789, 0.987654321, 0.111, 0.222]])
    model.partial_fit(inside, model.predict(inside))
    assert inside not in model.support_vectors_
    stored = pickle.dumps(model)
    assert inside.tobytes() not in stored
    assert len(stored) < X.nbytes
    again = pickle.loads(stored).partial_fit(X, y)
    np.testing.assert_array_equal(again.predict(X), model.partial_fit(X, y).predict(X))
