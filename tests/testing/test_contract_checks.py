"""Each contract check can fail, and says why (those of losses: tests/losses/test_custom.py)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import WhiteKernel

from fenchel import KernelRidge
from fenchel.features import Explicit, FeatureMap, Nystroem, PivotedCholesky
from fenchel.kernels import Box, Gaussian, Normal, OperatorKernel, ScalarKernel
from fenchel.losses import Pinball
from fenchel.solvers import ClosedForm, Newton, Status
from fenchel.testing import check_feature_map, check_kernel, check_solver, small_problems


class Changed(Gaussian):
    """A Gaussian kernel of width 1 with a method replaced, see ``changed``."""

    def __init__(self, length_scale=1.0, length_scale_bounds=(0.1, 10.0)):
        super().__init__(length_scale, length_scale_bounds)


def changed(**methods):
    return type("Wrong", (Changed,), methods)()


def spoil(self, X, Y):
    K = Gaussian._evaluate(self, X, Y)
    if Y is X:
        X += 1.0
    return K


def drifting(self, X, Y):
    self.calls = getattr(self, "calls", 0) + 1
    return Gaussian._evaluate(self, X, Y) * (1.0 if self.calls < 7 else 0.5)


def spoil_gradient(self, X, Z, weights):
    gradient = Gaussian.gradient(self, X, Z, weights)
    weights *= 2.0
    return gradient


def spoil_parameter_gradient(self, X, Z, weights):
    gradient = Gaussian.parameter_gradient(self, X, Z, weights)
    Z += 1.0
    return gradient


def differentiated_with(values=1.0, gradient=1.0):
    def differentiated(self, X):
        gram, of_weights = Gaussian.differentiated(self, X)
        return values * gram, lambda weights: gradient * of_weights(weights)

    return differentiated


def integrals_wrong_on(kind):
    def product_integrals(self, Z, measure):
        return (1.01 if kind(measure) else 1.0) * Gaussian.product_integrals(self, Z, measure)

    return product_integrals


def fail(self, Z, measure):
    raise ValueError("infinite")


KERNELS = {
    "not symmetric": (lambda X, Y: np.exp(X[:, :1] - 2.0 * Y[:, 0]), r"k\(X\) must be symmetric"),
    "not positive": (
        lambda X, Y: -np.abs(X[:, :1] - Y[:, 0]),
        r"not positive semi-definite: it has the eigenvalue -",
    ),
    "not finite": (lambda X, Y: np.full((len(X), len(Y)), np.nan), r"k\(X\) is not finite"),
    "noise": (Gaussian(1.0) + WhiteKernel(), r"k\(X, X\) must be k\(X\) \(leave noise"),
    "diagonal": (
        changed(diag=lambda self, X: np.full(len(X), 2.0)),
        r"diag\(X\) must be the",
    ),
    "diagonal of a wrong shape": (changed(diag=lambda self, X: np.ones((len(X), 1))), "diag"),
    "columns": (
        changed(
            _evaluate=lambda self, X, Y: (
                Gaussian._evaluate(self, X, Y) * (0.9 + 0.1 * (len(X) == len(Y)))
            )
        ),
        "must be columns",
    ),
    "rows changed": (changed(_evaluate=spoil), "."),
    "other values in tiles": (
        changed(fill=lambda self, X, Y, out: Gaussian(1.01).fill(X, Y, out)),
        "fill must write",
    ),
    "other rows in tiles": (
        changed(reduced=lambda self, X: (1.01 * X, self)),
        "reduced and fill",
    ),
    "memory": (changed(_evaluate=drifting), "the same each time"),
    "gradient": (
        changed(gradient=lambda self, *given: 1.001 * Gaussian.gradient(self, *given)),
        r"gradient, coordinate \d, at \[.*\] is .*, and differences give",
    ),
    "gradient in the other argument": (
        changed(gradient=lambda self, *given: -Gaussian.gradient(self, *given)),
        "and differences give",
    ),
    "parameter gradient": (
        changed(
            parameter_gradient=lambda self, *given: (
                1.001 * Gaussian.parameter_gradient(self, *given)
            )
        ),
        r"parameter_gradient, theta\[0\], is .*, and differences give",
    ),
    "parameter gradient that is not known": (
        changed(parameter_gradient=lambda self, *given: None),
        r"parameter_gradient must know the 1 parameters of theta: ",
    ),
    "parameter gradient of a wrong shape": (
        changed(parameter_gradient=lambda self, X, Z, weights: np.ones(2)),
        r"parameter_gradient\(X, Z, weights\) must have shape \(1,\)",
    ),
    "parameter gradient changes its arrays": (
        changed(parameter_gradient=spoil_parameter_gradient),
        "parameter_gradient changes the arrays",
    ),
    "differentiated, the kernel": (
        changed(differentiated=differentiated_with(values=1.001)),
        r"differentiated\(X\) must return k\(X\)",
    ),
    "differentiated, the derivatives": (
        changed(differentiated=differentiated_with(gradient=1.001)),
        r"differentiated, theta\[0\], is .*, and differences give",
    ),
    "gradient of a wrong shape": (
        changed(gradient=lambda self, X, Z, weights: np.ones((*weights.shape, 3))),
        r"gradient\(X, Z, weights\) must have shape \(6, 3\)",
    ),
    "gradient changes its arrays": (
        changed(gradient=spoil_gradient),
        "gradient changes the arrays",
    ),
    **{
        f"integral over {measure}": (
            changed(product_integrals=integrals_wrong_on(kind)),
            rf"product_integrals over {measure} of rows .* a Sobol rule gives",
        )
        for measure, kind in (
            (
                "a box",
                lambda measure: isinstance(measure, Box) and np.all(np.isfinite(measure.low)),
            ),
            ("a normal density", lambda measure: isinstance(measure, Normal)),
            (
                "half of space",
                lambda measure: (
                    isinstance(measure, Box) and np.isinf(measure.low[0]) and not measure.whole
                ),
            ),
            ("all of space", lambda measure: isinstance(measure, Box) and measure.whole),
        )
    },
    "integral of a wrong shape": (
        changed(product_integrals=lambda self, Z, measure: np.ones(len(Z))),
        r"product_integrals\(Z, measure\) must have shape \(4, 4\)",
    ),
    "integral that fails": (
        changed(product_integrals=fail),
        "product_integrals must not fail for a box",
    ),
    "factor": (
        changed(factor=lambda self, columns: Gaussian(2.0)),
        "the product of the factors must be the kernel",
    ),
    "factor in the wrong order": (
        changed(factor=lambda self, columns: Gaussian([1.0, 2.0, 3.0][: len(columns)])),
        ".",
    ),
    "frequencies": (
        changed(frequencies=lambda self, *given: 1.2 * Gaussian.frequencies(self, *given)),
        r"mean cosines of frequencies at \[.*\] and \[.*\] are .*, and the kernel is",
    ),
    "frequencies of a wrong shape": (
        changed(frequencies=lambda self, *given: Gaussian.frequencies(self, *given).T),
        r"frequencies\(n_features, size, random\) must have shape \(3, 16384\)",
    ),
    "some factors only": (
        changed(factor=lambda self, columns: Gaussian(1.0) if len(columns) > 1 else None),
        r"factor\(\[0\]\) must be a kernel",
    ),
}


@pytest.mark.parametrize("case", KERNELS)
def test_wrong_kernels_are_found(case):
    kernel, sentence = KERNELS[case]
    with pytest.raises(AssertionError, match=sentence):
        check_kernel(kernel)


def test_kernel_that_a_clone_is_not():
    class Wide(Changed):
        def _evaluate(self, X, Y):
            return getattr(self, "height", 1.0) * super()._evaluate(X, Y)

        def diag(self, X):
            return getattr(self, "height", 1.0) * super().diag(X)

    kernel = Wide()
    kernel.height = 2.0
    check_kernel(kernel)  # the height is lost by the first clone: what is left is a kernel

    class Grown(ScalarKernel):
        def __init__(self, size=1.0):
            self.size = size + 1.0

        def _evaluate(self, X, Y):
            return np.full((len(X), len(Y)), self.size)

    with pytest.raises(RuntimeError, match="Cannot clone"):
        check_kernel(Grown())


class Wrong(Nystroem):
    """Nyström features that subclasses spoil."""

    def __init__(self, kernel="laplacian", rank=20, landmarks=None, random_state=None):
        super().__init__(kernel, rank, landmarks, random_state)


class OtherTraining(Wrong):
    def _fit(self, X):
        return 1.001 * super()._fit(X)


class Optimistic(Wrong):
    def _fit(self, X):
        features = super()._fit(X)
        self.kernel_error_ *= 0.01
        return features


class NoError(Wrong):
    def _fit(self, X):
        features = super()._fit(X)
        self.kernel_error_ = -1.0
        return features


class NotByRow(Wrong):
    def _map(self, X):
        features = super()._map(X)
        return features if len(X) > 20 else features[::-1]


class Moody(Wrong):
    def _fit(self, X):
        self.random_state = np.random.RandomState()  # sampled anew each time
        return super()._fit(X)


class Unsettled(Wrong):
    count = 0

    def _fit(self, X):
        type(self).count += 1
        self.random_state_ = None
        features = super()._fit(X)
        self.whitening_ = self.whitening_ * (1.0 if type(self).count == 1 else -1.0)
        return features if type(self).count == 1 else -features


class OtherCoefficients(Wrong):
    def coefficients(self, weights):
        return 2.0 * super().coefficients(weights)


class OtherValues(Wrong):
    def from_kernel_values(self, values):
        return 2.0 * super().from_kernel_values(values)


class Slopes(Explicit):
    def gradient(self, X, weights):
        return 1.01 * super().gradient(X, weights)


class Volumes(Explicit):
    def product_integrals(self, measure):
        return 1.1 * super().product_integrals(measure)


class Names(Wrong):
    def get_feature_names_out(self, input_features=None):
        return super().get_feature_names_out()[1:]


MAPS = {
    OtherTraining: r"transform\(X\) must be the features of the training rows: they differ by",
    Optimistic: r"kernel_error_ is .*, too low",
    NoError: r"kernel_error_ must be a finite number >= 0, got -",
    NotByRow: r"transform must work row by row",
    Moody: r"fit must not change the parameters|fit and transform|same each time",
    Unsettled: r"fit and transform must do what fit_transform does",
    OtherCoefficients: r"times coefficients\(weights\) must be features times weights",
    OtherValues: r"from_kernel_values of the kernel values at the landmarks must be",
    Slopes: r"gradient\(X, weights\) differs by .* from differences of the features",
    Volumes: r"product_integrals over a box differs by .* from a Sobol rule",
    Names: r"get_feature_names_out gives 19 names for 20",
}


@pytest.mark.parametrize("mapping", MAPS)
def test_wrong_maps_are_found(mapping):
    with pytest.raises(AssertionError, match=MAPS[mapping]):
        check_feature_map(mapping())


def test_right_maps_stay_unfitted():
    mapping = PivotedCholesky("laplacian")
    check_feature_map(mapping)
    assert not hasattr(mapping, "rank_")
    check_feature_map(Explicit())


def wrong_solver(change):
    """Newton whose solution is changed by ``change(problem, solution)``."""

    class WrongSolver(Newton):
        def solve(self, problem, warm_start=None, callback=None):
            return change(problem, super().solve(problem, warm_start, callback))

    return WrongSolver()


def with_certificate(solution, **values):
    return replace(solution, certificate=replace(solution.certificate, **values))


def spoil_problem(problem, solution):
    problem.targets[0] += 1e-9
    return solution


def infeasible(problem, solution):
    scale = 3.0 if isinstance(problem.loss, Pinball) else 1.0
    return replace(solution, dual=scale * solution.dual)


def unbalanced(problem, solution):
    dual = solution.dual.copy()
    dual[0] *= 0.5
    return replace(solution, dual=dual)


SOLVERS = {
    "another dual point": (
        lambda problem, s: replace(s, dual=0.9 * s.dual),
        r"certificate\.dual is .*, and the objective of the dual vectors is",
    ),
    "outside the domain": (infeasible, r"not feasible: the conjugate is infinite in \d+ row"),
    "unbalanced": (unbalanced, r"its weighted sum must be zero"),
    "other weights": (
        lambda problem, s: replace(s, weights=0.9 * s.weights),
        r"certificate\.primal is .*, and the objective of the weights and offset is",
    ),
    "offset where there is none": (
        lambda problem, s: replace(s, offset=s.offset + (0.0 if problem.fit_intercept else 1e-3)),
        r"no intercept.*offset must be exactly zero",
    ),
    "larger unit": (
        lambda problem, s: with_certificate(s, unit=2.0 * s.certificate.unit),
        r"certificate\.relative_gap is .*, and the gap over the objective of the best constant",
    ),
    "claims to have converged": (
        lambda problem, s: replace(
            Newton(tol=1e-1).solve(problem), status=Status(True, "it says so")
        ),
        r"it says that it converged, with a relative gap of",
    ),
    "says nothing": (
        lambda problem, s: replace(s, status=Status(True, "")),
        r"status\.message must be a sentence, got ''",
    ),
    "no history": (lambda problem, s: replace(s, history=[]), r"the history kept"),
    "changes the problem": (spoil_problem, r"."),
    "wrong shape": (lambda problem, s: replace(s, offset=np.zeros(7)), r"offset must have shape"),
}


@pytest.mark.parametrize("case", SOLVERS)
def test_wrong_solvers_are_found(case):
    change, sentence = SOLVERS[case]
    with pytest.raises(AssertionError, match=f"^WrongSolver on .*{sentence}"):
        check_solver(wrong_solver(change))


def test_warm_start_is_to_be_used():
    class Slow(Newton):
        def solve(self, problem, warm_start=None, callback=None):
            solution = super().solve(problem, None, callback)
            return replace(solution, n_iter=solution.n_iter + (0 if warm_start is None else 20))

    class Lost(Newton):
        def solve(self, problem, warm_start=None, callback=None):
            solution = super().solve(problem, None, callback)
            status = Status(warm_start is None, "lost its way here")
            return replace(solution, status=status)

    with pytest.raises(AssertionError, match=r"from its own solution, it takes \d+ steps"):
        check_solver(Slow())
    with pytest.raises(AssertionError, match=r"does not converge: lost its way"):
        check_solver(Lost())


def test_refusals_are_sentences():
    class Mute(Newton):
        def requires(self, problem):
            return "" if isinstance(problem.loss, Pinball) else None

    class Never(Newton):
        def requires(self, problem):
            return "needs another kind of problem"

    with pytest.raises(AssertionError, match=r"requires\(problem\) must return None or a"):
        check_solver(Mute())
    with pytest.raises(AssertionError, match=r"Never refuses all problems; .*another kind"):
        check_solver(Never())


def test_problems_of_ones_own():
    problems = [each for each in small_problems(3) if ClosedForm().requires(each) is None]
    assert problems
    check_solver(ClosedForm(), problems)
    check_solver(ClosedForm())
    check_solver(Newton(tol=1e-9), small_problems(4)[:6])


class FirstRows(FeatureMap):
    """Features by the first rows, which are called landmarks, and without their coefficients."""

    def __init__(self, kernel=None, random_state=None):
        self.kernel, self.random_state = kernel, random_state

    def _fit(self, X):
        self.landmarks_ = X[:3]
        self.left_ = np.linalg.cholesky(self.kernel_(self.landmarks_))
        features = self._map(X)
        self._set_kernel_error(self.kernel_.diag(X), self.kernel_.diag(X) - (features**2).sum(1))
        return features

    def _map(self, X):
        return np.linalg.solve(self.left_, self.kernel_(self.landmarks_, X)).T


def test_a_feature_map_need_not_know_coefficients():
    check_feature_map(FirstRows(Gaussian(1.0)))
    X = np.random.default_rng(0).normal(size=(20, 2))
    found = FirstRows(Gaussian(1.0)).fit(X)
    assert found.gradient(X, np.ones((20, 3))) is None
    assert found.product_integrals(Box(X.min(axis=0), X.max(axis=0))) is None
    with pytest.warns(UserWarning, match="leaves out"):
        model = KernelRidge(features=FirstRows(), kernel="gaussian", learn=False).fit(X, X[:, 0])
    assert model.feature_map_.rank_ == 3


def test_a_feature_map_without_an_error_is_found():
    class Silent(FirstRows):
        def _set_kernel_error(self, diagonal, left):
            pass

    with pytest.raises(AssertionError, match="kernel_error_ must be a finite number >= 0"):
        check_feature_map(Silent())


@pytest.mark.parametrize(
    ("base", "method", "arguments"),
    [
        (ScalarKernel, "_evaluate", (np.ones((1, 1)), np.ones((1, 1)))),
        (OperatorKernel, "columns", (np.ones((1, 1)), np.ones((1, 1)), np.zeros(1, dtype=int))),
        (OperatorKernel, "diag", (np.ones((1, 1)),)),
        (OperatorKernel, "resolved", (np.ones((1, 1)),)),
        (FeatureMap, "_fit", (np.ones((1, 1)),)),
        (FeatureMap, "_map", (np.ones((1, 1)),)),
    ],
)
def test_what_a_subclass_lacks_is_named(base, method, arguments):
    own = type("Mine", (base,), {})()
    with pytest.raises(NotImplementedError, match=f"Mine must define {method}"):
        getattr(own, method)(*arguments)
