"""Bad input: an error that names the parameter, what was given and what is allowed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.features import Nystroem
from fenchel.kernels import Decomposable, Gaussian, Linear, Matern, Polynomial
from fenchel.losses import Huber, Pinball, Squared

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 2))
Y = RNG.normal(size=20)
ALL = [QuantileRegressor, ExpectileRegressor, SVR, KernelRidge]
LEVELS = [QuantileRegressor, ExpectileRegressor]
everyone = pytest.mark.parametrize("estimator", ALL, ids=lambda e: e.__name__)
with_levels = pytest.mark.parametrize("estimator", LEVELS, ids=lambda e: e.__name__)


def refused(error, named, call):
    """The call raises this very error, and its sentence contains all these words."""
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert isinstance(caught.value, error), repr(caught.value)
    sentence = str(caught.value)
    for word in named:
        assert word.lower() in sentence.lower(), f"{word!r} is not in: {sentence}"


# Parameters: (name, value, error, what the sentence must also contain)


NUMBERS = [
    ("alpha", 0.0, ValueError, ["> 0", "0.0"]),
    ("alpha", -1.0, ValueError, ["> 0", "-1.0"]),
    ("alpha", np.nan, ValueError, ["> 0", "nan", "finite"]),
    ("alpha", np.inf, ValueError, ["> 0", "inf", "finite"]),
    ("alpha", "1e-3", TypeError, ["> 0", "'1e-3'"]),
    ("learn", "yes", TypeError, ["True, False", "Learning", "'yes'"]),
    ("learn", None, TypeError, ["True, False", "Learning", "None"]),
    ("alpha", [1e-3], TypeError, ["> 0", "[0.001]"]),
    ("alpha", True, TypeError, ["> 0", "True"]),
    ("tol", 0.0, ValueError, ["> 0", "0.0"]),
    ("tol", -1e-3, ValueError, ["> 0", "-0.001"]),
    ("tol", np.nan, ValueError, ["> 0", "nan"]),
    ("tol", "small", TypeError, ["> 0", "'small'"]),
    ("max_iter", 0, ValueError, [">= 1", "integer", "0"]),
    ("max_iter", -5, ValueError, [">= 1", "integer", "-5"]),
    ("max_iter", 10.5, TypeError, [">= 1", "integer", "10.5"]),
    ("max_iter", None, TypeError, [">= 1", "integer", "None"]),
    ("rank", 0, ValueError, [">= 1", "integer", "0"]),
    ("rank", -3, ValueError, [">= 1", "integer", "-3"]),
    ("rank", 2.5, TypeError, [">= 1", "integer", "2.5"]),
    ("rank", "all", TypeError, [">= 1", "integer", "'all'"]),
]


@everyone
@pytest.mark.parametrize(("name", "value", "error", "words"), NUMBERS)
def test_numbers(estimator, name, value, error, words):
    refused(error, [name, *words], lambda: estimator(**{name: value}).fit(X, Y))


CHOICES = [
    ("kernel", "gauss", ValueError, ["'gauss'", "'gaussian'", "'laplacian'", "'precomputed'"]),
    ("kernel", 3, TypeError, ["3", "name", "function"]),
    ("kernel", Gaussian, TypeError, ["kernel object"]),
    ("features", "chol", ValueError, ["'chol'", "auto", "cholesky", "nystroem", "fourier"]),
    ("features", 3, ValueError, ["3", "auto", "cholesky"]),
    ("solver", "simplex", ValueError, ["'simplex'", "auto", "newton", "closed_form"]),
    ("solver", 3, ValueError, ["3", "auto", "newton"]),
]


@everyone
@pytest.mark.parametrize(("name", "value", "error", "words"), CHOICES)
def test_choices(estimator, name, value, error, words):
    refused(error, [name, *words], lambda: estimator(**{name: value}).fit(X, Y))


@everyone
@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (Gaussian(length_scale=0.0), ["length_scale", "0.0", "positive"]),
        (Gaussian(length_scale=-1.0), ["length_scale", "-1.0", "positive"]),
        (Gaussian(length_scale=np.nan), ["length_scale", "nan", "positive"]),
        (Gaussian(length_scale="mean"), ["length_scale", "'mean'", "'median'"]),
        (Gaussian(length_scale=[1.0, 2.0, 3.0]), ["length_scale", "2 features", "3"]),
        (Matern(nu=2.0), ["nu", "2.0", "0.5, 1.5 or 2.5"]),
        (Polynomial(degree=0), ["degree", "0", ">= 1"]),
        (Polynomial(offset=-1.0), ["offset", "-1.0", ">= 0"]),
    ],
    ids=repr,
)
def test_parameters_of_kernels(estimator, kernel, words):
    refused(ValueError, words, lambda: estimator(kernel=kernel).fit(X, Y))


@everyone
def test_kernel_that_is_not_positive_semi_definite(estimator):
    def distance(A, B):
        return np.abs(A[:, :1] - B[:, :1].T)

    model = estimator(kernel=distance)
    refused(ValueError, ["kernel", "positive semi-definite"], lambda: model.fit(X, Y))


@everyone
def test_callable_kernel_of_the_wrong_shape(estimator):
    model = estimator(kernel=lambda A, B: np.ones(len(A)))
    refused(ValueError, ["kernel", "array", "shape"], lambda: model.fit(X, Y))


@everyone
def test_fourier_features_of_another_kernel(estimator):
    model = estimator(kernel="linear", features="fourier")
    refused(ValueError, ["fourier", "Linear()", "Gaussian", "cholesky"], lambda: model.fit(X, Y))


@with_levels
@pytest.mark.parametrize(
    ("levels", "words"),
    [
        (0.0, ["between 0 and 1", "0.0"]),
        (1.0, ["between 0 and 1", "1.0"]),
        (-0.1, ["between 0 and 1", "-0.1"]),
        (50, ["between 0 and 1", "50"]),
        (np.nan, ["between 0 and 1", "nan"]),
        ([0.1, 1.5], ["between 0 and 1", "[0.1, 1.5]"]),
        ([0.5, 0.1, 0.5], ["repeat", "[0.5, 0.1, 0.5]"]),
        ([], ["non-empty", "[]"]),
        ([[0.1, 0.9]], ["sequence", "[[0.1, 0.9]]"]),
        ("median", ["'median'"]),
        (None, ["None"]),
    ],
)
def test_levels(estimator, levels, words):
    call = estimator(levels).fit
    with pytest.raises((ValueError, TypeError)) as caught:
        call(X, Y)
    sentence = str(caught.value)
    for word in ["levels", *words]:
        assert word in sentence, sentence


@with_levels
@pytest.mark.parametrize(
    ("name", "value", "error", "words"),
    [
        ("epsilon", -0.1, ValueError, [">= 0", "-0.1"]),
        ("epsilon", np.nan, ValueError, [">= 0", "nan"]),
        ("epsilon", np.inf, ValueError, [">= 0", "inf"]),
        ("epsilon", "0.1", TypeError, [">= 0", "'0.1'"]),
        ("level_gamma", -1.0, ValueError, [">= 0", "-1.0"]),
        ("level_gamma", np.nan, ValueError, [">= 0", "nan"]),
        ("level_gamma", "inf", TypeError, [">= 0", "'inf'"]),
    ],
)
def test_parameters_of_levels(estimator, name, value, error, words):
    model = estimator([0.2, 0.8], **{name: value})
    refused(error, [name, *words], lambda: model.fit(X, Y))


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"loss": "hinge"}, ValueError, ["loss", "'hinge'", "epsilon_insensitive", "huber"]),
        ({"loss": 3}, ValueError, ["loss", "3", "epsilon_insensitive", "Loss"]),
        ({"loss": Squared}, ValueError, ["loss", "Loss"]),
        ({"epsilon": -0.1}, ValueError, ["epsilon", ">= 0", "-0.1"]),
        ({"epsilon": "wide"}, TypeError, ["epsilon", ">= 0", "'wide'"]),
        ({"epsilon": np.inf}, ValueError, ["epsilon", ">= 0", "inf"]),
        ({"epsilon": -0.1, "loss": "squared_epsilon_insensitive"}, ValueError, ["epsilon"]),
        ({"kappa": 0.0, "loss": "huber"}, ValueError, ["kappa", "> 0", "0.0"]),
        ({"loss": Pinball([0.1, 0.9])}, ValueError, ["loss", "2 outputs", "y has 1"]),
    ],
)
def test_parameters_of_svr(parameters, error, words):
    refused(error, words, lambda: SVR(**parameters).fit(X, Y))


def test_loss_for_another_number_of_outputs():
    model = SVR(loss=Pinball([0.1, 0.5, 0.9]))
    two = np.column_stack([Y, Y])
    refused(ValueError, ["loss", "3 outputs", "y has 2"], lambda: model.fit(X, two))


@pytest.mark.parametrize(
    "model",
    [
        QuantileRegressor(solver="closed_form"),
        ExpectileRegressor(solver="closed_form"),
        SVR(solver="closed_form"),
        SVR(loss=Huber(1.0), solver="closed_form"),
        SVR(loss="squared_epsilon_insensitive", solver="closed_form"),
    ],
    ids=repr,
)
def test_closed_form_for_another_loss(model):
    words = ["solver='closed_form'", "squared loss", "solver='newton'"]
    refused(ValueError, words, lambda: model.fit(X, Y))


def learning(progress):
    pytest.fail("learned before the refusal")


@everyone
@pytest.mark.parametrize(
    "parameters",
    [
        {"solver": "simplex"},
        {"kernel": "gauss"},
        {"kernel": lambda A, B: np.abs(A[:, :1] - B[:, :1].T)},
        {"features": "fourier", "kernel": Gaussian() + Linear()},
        {"features": "fourier", "kernel": "linear"},
        {"features": Nystroem(landmarks=X[:, :1])},
        {"solver": "augmented_lagrangian", "fit_intercept": False},
        {"solver": "augmented_lagrangian", "fit_intercept": False, "kernel": Gaussian(1.0)},
    ],
    ids=", ".join,
)
def test_refused_before_time_is_spent(estimator, parameters):
    model = estimator(**parameters, callback=learning)
    refused(ValueError, [], lambda: model.fit(X, Y))


@pytest.mark.slow
def test_a_solver_is_not_refused_for_what_few_rows_look_like():
    """The first rows are equal: their kernel has rank one, that of all rows a high one."""
    rows = np.vstack([np.zeros((20, 2)), np.random.default_rng(1).normal(size=(80, 2))])
    model = SVR(solver="smo", kernel=Matern(nu=0.5), epsilon=0.1, alpha=1e-3)
    assert model.fit(rows, rows[:, 0]).certificate_.relative_gap <= 1e-6


@everyone
def test_bad_rows_are_refused_before_time_is_spent(estimator):
    model = estimator(callback=learning)
    refused(ValueError, ["X", "1e+150"], lambda: model.fit(spoiled(X, 1e200), Y))
    refused(ValueError, ["sample_weight"], lambda: model.fit(X, Y, -np.ones(20)))


# Data


def spoiled(array, value):
    array = array.copy()
    array.flat[3] = value
    return array


BAD_DATA = {
    "NaN in X": (spoiled(X, np.nan), Y, ["X", "NaN"]),
    "infinity in X": (spoiled(X, np.inf), Y, ["X", "infinity"]),
    "minus infinity in X": (spoiled(X, -np.inf), Y, ["X", "infinity"]),
    "NaN in y": (X, spoiled(Y, np.nan), ["y", "NaN"]),
    "infinity in y": (X, spoiled(Y, np.inf), ["y", "infinity"]),
    "no rows": (X[:0], Y[:0], ["0 sample(s)", "minimum of 1"]),
    "no columns": (X[:, :0], Y, ["0 feature(s)", "minimum of 1"]),
    "one-dimensional X": (X[:, 0], Y, ["2D array", "1D array"]),
    "three-dimensional X": (X[:, :, None], Y, ["dim 3", "2"]),
    "a number for X": (1.0, Y, ["2D array", "scalar"]),
    "too few targets": (X, Y[:-1], ["inconsistent", "20", "19"]),
    "too many targets": (X[:-1], Y, ["inconsistent", "20", "19"]),
    "no targets": (X, None, ["y"]),
    "words in X": (np.full((20, 2), "a"), Y, ["string", "'a'"]),
    "words in y": (X, np.full(20, "a"), ["string", "'a'"]),
}


@everyone
@pytest.mark.parametrize("case", BAD_DATA)
def test_data(estimator, case):
    bad_X, bad_y, words = BAD_DATA[case]
    refused(ValueError, words, lambda: estimator().fit(bad_X, bad_y))


@everyone
def test_complex_data(estimator):
    refused(ValueError, ["complex"], lambda: estimator().fit(X + 1j, Y))


@everyone
@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array], ids=lambda m: m.__name__)
def test_sparse_rows(estimator, make):
    bad = make(X)
    bad.data[3] = np.nan
    refused(ValueError, ["X", "NaN"], lambda: estimator().fit(bad, Y))
    refused(ValueError, ["y", "one entry", str(len(X))], lambda: estimator().fit(make(X), Y[1:]))
    model = estimator().fit(make(X), Y)
    refused(ValueError, ["X", "NaN"], lambda: model.predict(bad))
    wide = sparse.hstack([make(X), make(X)])
    refused(ValueError, ["X", f"{2 * X.shape[1]} features"], lambda: model.predict(wide))


@with_levels
def test_several_targets_for_levels(estimator):
    two, three = np.column_stack([Y, Y]), np.eye(3)
    refused(
        ValueError,
        ["coupling", "column of y", "2 here", "(3, 3)"],
        lambda: estimator(coupling=three).fit(X, two),
    )
    refused(
        ValueError,
        ["coupling", "column of y", "1 here", "(3, 3)"],
        lambda: estimator(coupling=three).fit(X, Y),
    )
    refused(
        ValueError,
        ["coupling", "positive semi-definite"],
        lambda: estimator(coupling=-np.eye(2)).fit(X, two),
    )
    kernel = Decomposable("gaussian", three)
    refused(
        ValueError,
        ["coupling", "None", "Decomposable"],
        lambda: estimator(coupling=three, kernel=kernel).fit(X, two),
    )
    refused(ValueError, ["y", "dim 3"], lambda: estimator().fit(X, two[:, :, None]))
    model = estimator([0.2, 0.5, 0.8], learn=False).fit(X, two)
    refused(ValueError, ["y", "2 columns", "(20,)"], lambda: model.score(X, Y))
    refused(ValueError, ["y", "one column", "got 2"], lambda: model.predict_distribution(X))


def test_curves_in_order_of_several_targets():
    two = np.column_stack([Y, Y])
    model = QuantileRegressor([0.2, 0.8], non_crossing="train")
    refused(ValueError, ["non_crossing", "one column", "got 2"], lambda: model.fit(X, two))


@everyone
@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.r_[np.ones(19), -1.0], ["negative", "sample_weight"]),
        (np.zeros(20), ["sample_weight", "positive", "zeros"]),
        (np.ones(19), ["sample_weight", "one entry", "20 rows", "got 19"]),
        (np.ones((20, 1)), ["sample", "weight", "1D"]),
        (np.r_[np.ones(19), np.nan], ["sample_weight", "NaN"]),
        (np.r_[np.ones(19), np.inf], ["sample_weight", "infinity"]),
    ],
    ids=["negative", "all zero", "too few", "a column", "NaN", "infinite"],
)
def test_sample_weight(estimator, weight, words):
    refused(ValueError, words, lambda: estimator().fit(X, Y, sample_weight=weight))


GRAM = X @ X.T


@everyone
@pytest.mark.parametrize(
    ("gram", "words"),
    [
        (GRAM[:, :10], ["precomputed", "square", "(20, 10)"]),
        (X, ["precomputed", "square", "(20, 2)"]),
        (-np.eye(20), ["positive semi-definite", "precomputed"]),
        (GRAM - 0.5 * np.eye(20), ["positive semi-definite", "precomputed"]),
        (np.ones((20, 20)) - np.eye(20), ["positive semi-definite", "precomputed"]),
        (np.diag([1.0] * 19 + [-0.01]), ["positive semi-definite", "precomputed"]),
        (np.triu(np.ones((20, 20))), ["precomputed", "symmetric"]),
        (spoiled(GRAM, np.nan), ["NaN"]),
    ],
    ids=[
        "not square",
        "rows",
        "negative",
        "shifted",
        "zero diagonal",
        "one negative entry",
        "not symmetric",
        "NaN",
    ],
)
def test_gram_matrices(estimator, gram, words):
    refused(ValueError, words, lambda: estimator(kernel="precomputed").fit(gram, Y))


# After the fit


@everyone
def test_predict_before_fit(estimator):
    with pytest.raises(NotFittedError, match=f"{estimator.__name__}.*not fitted"):
        estimator().predict(X)


@everyone
def test_neither_checks_nor_preparations_are_fits(estimator):
    model = estimator()
    model.check_parameters()
    model.prepare(X, Y)
    with pytest.raises(NotFittedError, match=f"{estimator.__name__}.*not fitted"):
        model.predict(X)


@with_levels
def test_other_methods_before_fit(estimator):
    for call in (
        lambda: estimator().score(X, Y),
        lambda: estimator().crossing_loss(X),
    ):
        with pytest.raises(NotFittedError, match=f"{estimator.__name__}.*not fitted"):
            call()


def test_interval_before_fit():
    with pytest.raises(NotFittedError, match="not fitted"):
        QuantileRegressor([0.1, 0.9]).predict_interval(X, 0.8)


@everyone
def test_predict_on_bad_rows(estimator):
    model = estimator(learn=False).fit(X, Y)
    words = [estimator.__name__, "3 features", "2 features"]
    refused(ValueError, words, lambda: model.predict(np.ones((5, 3))))
    words = [estimator.__name__, "1 features", "2 features"]
    refused(ValueError, words, lambda: model.predict(np.ones((5, 1))))
    refused(ValueError, ["2D array", "1D array"], lambda: model.predict(X[:, 0]))
    refused(ValueError, ["NaN"], lambda: model.predict(spoiled(X, np.nan)))
    refused(ValueError, ["infinity"], lambda: model.predict(spoiled(X, np.inf)))
    refused(ValueError, ["0 sample(s)"], lambda: model.predict(X[:0]))


@everyone
def test_predict_on_a_gram_matrix_of_the_wrong_width(estimator):
    model = estimator(kernel="precomputed").fit(GRAM, Y)
    words = ["10 features", "20 features"]
    refused(ValueError, words, lambda: model.predict(GRAM[:, :10]))


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.5, 90, np.nan])
def test_coverage_outside(coverage):
    model = QuantileRegressor([0.1, 0.9], learn=False).fit(X, Y)
    words = ["coverage", "(0, 1)", repr(coverage)]
    refused(ValueError, words, lambda: model.predict_interval(X, coverage))


@pytest.mark.slow
def test_coverage_without_its_levels():
    model = QuantileRegressor([0.1, 0.9]).fit(X, Y)
    words = ["coverage=0.9", "0.05", "0.95", "[0.1, 0.9]"]
    refused(ValueError, words, lambda: model.predict_interval(X, 0.9))


@pytest.mark.slow
@with_levels
def test_score_on_bad_data(estimator):
    model = estimator([0.1, 0.9]).fit(X, Y)
    refused(ValueError, ["19", "20"], lambda: model.score(X, Y[:-1]))
    refused(ValueError, ["y", "NaN"], lambda: model.score(X, spoiled(Y, np.nan)))
    refused(ValueError, ["sample_weight"], lambda: model.score(X, Y, np.ones(19)))
    refused(ValueError, ["sample_weight"], lambda: model.score(X, Y, -np.ones(20)))
    refused(ValueError, ["sample_weight"], lambda: model.score(X, Y, np.zeros(20)))


@everyone
def test_a_failed_fit_leaves_the_parameters_alone(estimator):
    model = estimator(alpha=-1.0, kernel="linear")
    before = model.get_params()
    with pytest.raises(ValueError, match="alpha"):
        model.fit(X, Y)
    assert model.get_params() == before


@everyone
@pytest.mark.parametrize("cell", ["Nord", np.nan])
def test_words_and_missing_values_lead_to_the_encoder(estimator, cell):
    table = [[cell, 1.0], [2.0, 3.0]]
    refused(
        ValueError, ["X", "fenchel.tables.TableEncoder"], lambda: estimator().fit(table, [0, 1])
    )
