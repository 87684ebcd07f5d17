"""Check of a kernel."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import clone

from fenchel._typing import AnyArray, FloatArray
from fenchel.kernels import (
    Box,
    KernelFunctions,
    Normal,
    as_kernel,
    as_scalar_kernel,
    differentiated,
    opened,
    parameter_gradient,
    resolve,
)
from fenchel.testing._saying import (
    about,
    central_differences,
    require,
    require_near,
    require_shape,
    show,
    sobol_mean,
)

_TOL = 1e-10
_STEP = 1e-5  # of central differences, in widths: their error and their rounding are about 1e-10
_DIFFERENCE = 1e-6
_MOVED = 1e-6
_POINTS = 2**12
_DRAWS = 2**14
_DEVIATIONS = 8.0


def check_kernel(kernel: Any, X: AnyArray | None = None) -> None:
    """Check that a kernel is symmetric and positive semi-definite, and its methods consistent.

    The following are checked for any kernel:

    - symmetry, and ``k(X) = k(X, X)``;
    - the smallest eigenvalue of the Gram matrix, at least -1e-10 times the largest, on rows some
      of which are equal;
    - ``diag``, columns and blocks as parts of the Gram matrix, and values by ``reduced`` and
      ``fill``;
    - ``is_stationary``, by rows that are all moved;
    - ``clone``, and that neither evaluation nor data-driven length scales change the kernel or the
      rows.

    If the kernel defines them, these are checked as well:

    - ``gradient`` against central differences of the values;
    - ``product_integrals`` over a box, against a normal density, and in up to three dimensions
      over half and all of space, compared with a scrambled Sobol rule with the error that its
      repetitions show;
    - the product of its factors (``factor``), and mean cosines of ``frequencies``, against the
      kernel;
    - for parameters to be learned, ``parameter_gradient`` and ``differentiated`` against central
      differences.

    Parameters
    ----------
    kernel : None, str, kernel or callable
        The kernel, see :func:`fenchel.kernels.as_kernel`; not a precomputed one.
    X : array-like of shape (n_samples, n_features), optional
        Rows to check on; by default 40 random rows of 3 features in different units.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.testing import check_kernel
    >>> check_kernel("matern52")
    >>> check_kernel(lambda X, Y: -np.abs(X[:, :1] - Y[:, 0]))
    Traceback (most recent call last):
        ...
    AssertionError: Callable(...): the Gram matrix is not positive semi-definite: ...
    """
    rows = _rows() if X is None else np.array(X, dtype=np.float64)
    given = as_kernel(kernel)
    name = f"{given!r}"
    before = repr(clone(given))
    fixed = resolve(given, rows)
    require(
        repr(given) == before,
        f"{name}: measuring its length scales changes the kernel itself, and not a copy",
    )
    with about(name):
        _check(fixed, rows)
        _check_factors(fixed, rows)
        _check_gradient(fixed, rows)
        _check_integrals(fixed, rows)
        _check_frequencies(fixed, rows)
        _check_parameters(opened(given, rows), rows)


def _rows() -> FloatArray:
    X = np.random.default_rng(0).standard_normal((40, 3)) * [1.0, 10.0, 0.1]
    X[5] = X[4]
    X[7] = 0.0
    return X


def _check(kernel: Any, X: FloatArray) -> None:
    n = len(X)
    before = X.copy()
    gram = kernel(X)
    require_shape(gram, (n, n), "k(X)")
    require(np.all(np.isfinite(gram)), "k(X) is not finite")
    same = partial(require_near, allowed=_TOL * float(np.abs(gram).max()))
    same(gram.T, gram, "k(X) must be symmetric")
    spectrum = np.linalg.eigvalsh(gram)
    lowest, highest = float(spectrum[0]), float(spectrum[-1])
    require(
        lowest >= -_TOL * n * max(highest, 0.0),
        f"the Gram matrix is not positive semi-definite: it has the eigenvalue {lowest:.3g} "
        f"beside {highest:.3g}",
    )
    same(kernel(X, X.copy()), gram, "k(X, X) must be k(X) (leave noise on the diagonal to alpha)")
    same(np.asarray(kernel.diag(X)), np.diag(gram), "diag(X) must be the diagonal of k(X)")
    some = np.arange(0, n, 3)
    same(kernel(X, X[some]), gram[:, some], "k(X, Z) of some rows Z must be columns of k(X)")
    same(kernel(X[some], X), gram[some], "k(Z, X) of some rows Z must be rows of k(X)")
    same(kernel(X, X[:1]), gram[:, :1], "k(X, z) of one row z must be a column of k(X)")
    same(kernel(X[::-1]), gram[::-1, ::-1], "k must not depend on the order of the rows")
    same(clone(kernel)(X), gram, "a clone must be the same kernel")
    same(kernel(X), gram, "k(X) must be the same each time")
    whole = KernelFunctions(kernel, X[some]).combined(X, np.eye(len(some)))
    same(whole, gram[:, some], "reduced and fill must write what k(X, Z) returns")
    logs = as_scalar_kernel(kernel).log_values(X, X[some])
    if logs is not None:
        same(np.exp(logs), gram[:, some], "log_values(X, Z) must be logarithms of k(X, Z)")
    seen, own = as_scalar_kernel(kernel).reduced(X)  # it may transform rows first
    if own.is_stationary():
        # kernels with a kink at equal rows feel the root of the rounding of their distances
        sentence = "is_stationary() must be False for a kernel that changes if all rows move"
        allowed = _MOVED * float(np.abs(gram).max())
        require_near(own(seen + np.ptp(seen, axis=0)), gram, sentence, allowed)
    require(np.array_equal(X, before), "the kernel changes the rows that it is given")


def _check_factors(kernel: Any, X: FloatArray) -> None:
    """A product of kernels of single columns, in any order of the columns."""
    own, gram, d = as_scalar_kernel(kernel), kernel(X), X.shape[1]
    allowed = _TOL * float(np.abs(gram).max())
    whole = own.factor(range(d))
    if whole is None:
        return
    product = np.ones_like(gram)
    for j in range(d):
        single = own.factor([j])
        require(single is not None, f"factor([{j}]) must be a kernel as factor of all columns is")
        assert single is not None
        product *= single(X[:, [j]])
    require_near(product, gram, "the product of the factors must be the kernel", allowed)
    backward = list(range(d))[::-1]
    turned = own.factor(backward)
    require(turned is not None, f"factor({backward}) must be a kernel as factor of all columns is")
    assert turned is not None
    sentence = f"factor({backward}) must be of these columns"
    require_near(turned(X[:, backward]), gram, sentence, allowed)


def _widths(kernel: Any, X: FloatArray) -> FloatArray:
    """Along each coordinate the distance at which k falls to a half; the spread if it does not."""
    spread = X.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    if not kernel.is_stationary():
        return spread
    start, half = X[:1], 0.5 * float(kernel.diag(X[:1])[0])
    width = spread.copy()
    for j in range(X.shape[1]):
        for power in np.arange(-20.0, 20.0, 0.5):
            moved = start.copy()
            moved[0, j] += spread[j] * 2.0**power
            if kernel(moved, start)[0, 0] < half:
                width[j] *= 2.0**power
                break
    return width


def _check_gradient(kernel: Any, X: FloatArray) -> None:
    """Against central differences of the values."""
    own, d = as_scalar_kernel(kernel), X.shape[1]
    random, width = np.random.default_rng(1), _widths(kernel, X)
    rows, Z = (X[0] + width / np.sqrt(d) * random.standard_normal((n, d)) for n in (6, 4))
    weights = random.standard_normal((6, 4))
    given = rows.copy(), Z.copy(), weights.copy()
    gradient = own.gradient(*given)
    if gradient is None:
        return
    require_shape(gradient, (6, d), "gradient(X, Z, weights)")
    require(
        all(map(np.array_equal, given, (rows, Z, weights))),
        "gradient changes the arrays that it is given",
    )
    size = float(np.abs(kernel(rows, Z)).max())
    expected = central_differences(
        lambda points: np.einsum("nm,nm->n", weights, kernel(points, Z)), rows, _STEP * width
    )
    # in units of a change of the kernel by its own size over its width
    apart = np.abs(gradient - expected) * width / max(size, float(np.abs(expected * width).max()))
    i, c = np.unravel_index(int(np.argmax(apart)), apart.shape)
    require(
        apart[i, c] <= _DIFFERENCE,
        f"gradient, coordinate {c}, at {show(rows[i])} is {gradient[i, c]:.6g}, and differences "
        f"give {expected[i, c]:.6g}",
    )


def _check_parameters(kernel: Any, X: FloatArray) -> None:
    """Derivatives in the open parameters against central differences."""
    count = len(kernel.theta)
    if count == 0:
        return
    random, theta = np.random.default_rng(3), kernel.theta
    rows, Z, weights = X[::2].copy(), X[::3].copy(), random.standard_normal((len(X), len(X)))
    given = rows.copy(), Z.copy(), weights[: len(rows), : len(Z)].copy()
    try:
        found = parameter_gradient(kernel, *given)
    except ValueError as error:
        sentence = f"parameter_gradient must know the {count} parameters of theta: {error}"
        raise AssertionError(sentence) from None
    require_shape(found, (count,), "parameter_gradient(X, Z, weights)")
    require(
        all(map(np.array_equal, given, (rows, Z, weights[: len(rows), : len(Z)]))),
        "parameter_gradient changes the arrays that it is given",
    )
    values, of_weights = differentiated(kernel, X)
    gram = kernel(X)
    allowed = _TOL * float(np.abs(gram).max())
    require_near(values, gram, "differentiated(X) must return k(X)", allowed)
    among = np.asarray(of_weights(weights))
    require_shape(among, (count,), "the derivatives of differentiated(X)")
    for m, move in enumerate(_STEP * np.eye(count)):
        sides = [kernel.clone_with_theta(theta + side)(X) for side in (move, -move)]
        slope = (sides[0] - sides[1]) / (2.0 * _STEP)
        for name, mine, change, weight in (
            ("parameter_gradient", found, slope[::2, ::3], given[2]),
            ("differentiated", among, slope, weights),
        ):
            expected = float(np.vdot(weight, change))
            unit = float(np.linalg.norm(weight)) * float(np.abs(gram).max())
            require(
                abs(mine[m] - expected) <= _DIFFERENCE * unit,
                f"{name}, theta[{m}], is {mine[m]:.6g}, and differences give {expected:.6g}",
            )


def _check_frequencies(kernel: Any, X: FloatArray) -> None:
    """Mean cosines of differences of rows, with the error that the draws show."""
    drawn = as_scalar_kernel(kernel).frequencies(X.shape[1], _DRAWS, np.random.RandomState(0))
    if drawn is None:
        return
    require_shape(drawn, (X.shape[1], _DRAWS), "frequencies(n_features, size, random)")
    require(kernel.is_stationary(), "frequencies must be None for a kernel that is not stationary")
    near = X[0] + _widths(kernel, X) / np.sqrt(X.shape[1]) * np.linspace(0.0, 2.0, 9)[:, None]
    cosines = np.cos((near - X[0]) @ drawn)
    expected = kernel(near, X[:1])[:, 0] / float(kernel.diag(X[:1])[0])
    apart = np.abs(cosines.mean(axis=1) - expected)
    error = _DEVIATIONS * cosines.std(axis=1) / np.sqrt(_DRAWS) + _TOL
    worst = int(np.argmax(apart - error))
    require(
        apart[worst] <= error[worst],
        f"mean cosines of frequencies at {show(near[worst])} and {show(X[0])} are "
        f"{cosines[worst].mean():.4g}, and the kernel is {expected[worst]:.4g} of its largest",
    )


def _check_integrals(kernel: Any, X: FloatArray) -> None:
    """Against a rule that knows only values."""
    d, width = X.shape[1], _widths(kernel, X)
    near = width / np.sqrt(d)
    Z = X[0] + 0.7 * near * np.random.default_rng(2).standard_normal((4, d))
    covariance = np.outer(near, near) * (0.5 * np.eye(d) + 0.25)
    measures: dict[str, Box | Normal] = {
        "a box": Box(X[0] - 1.3 * near, X[0] + 0.9 * near),
        "a normal density": Normal(X[0] + 0.2 * near, covariance),
    }
    if d <= 3:  # beyond, no simple rule is good on all of space
        measures["half of space"] = Box(np.full(d, -np.inf), X[0] + 0.5 * near)
        measures["all of space"] = Box(np.full(d, -np.inf), np.full(d, np.inf))
    for name, measure in measures.items():
        _check_integrals_over(measure, name, kernel, Z, width)


def _check_integrals_over(
    measure: Box | Normal, name: str, kernel: Any, Z: FloatArray, width: FloatArray
) -> None:
    given = Z.copy()
    try:
        found = as_scalar_kernel(kernel).product_integrals(given, measure)
    except ValueError:  # infinite, as it may say
        require(name.endswith("space"), f"product_integrals must not fail for {name}")
        return
    if found is None:
        return
    require_shape(found, (len(Z), len(Z)), "product_integrals(Z, measure)")
    require(np.array_equal(given, Z), "product_integrals changes the rows that it is given")

    def products(unit: FloatArray) -> FloatArray:
        points, weights = _rule(measure, unit, Z.mean(axis=0), width)
        values = kernel(points, Z)
        return np.asarray(values.T @ (weights[:, None] * values))

    expected, error = sobol_mean(products, Z.shape[1], _POINTS)
    apart = np.abs(found - expected)
    a, b = np.unravel_index(int(np.argmax(apart)), apart.shape)
    require(
        apart[a, b] <= _DEVIATIONS * error + 1e-7 * float(np.abs(expected).max()),
        f"product_integrals over {name} of rows {show(Z[a])} and {show(Z[b])} is "
        f"{found[a, b]:.9g}, and a Sobol rule gives {expected[a, b]:.9g} ± {error:.1g}",
    )


def _rule(
    measure: Box | Normal, unit: FloatArray, centre: FloatArray, width: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Points and weights for a measure from points of the unit cube, (n, d) and (n,)."""
    n = len(unit)
    unit = np.clip(unit, 1e-12, 1.0 - 1e-12)
    if isinstance(measure, Normal):
        points = measure.centre + stats.norm.ppf(unit) @ np.linalg.cholesky(measure.matrix).T
        return points, np.full(n, 1.0 / n)
    low, high = measure.bounds
    if np.all(np.isfinite(high - low)):
        return low + (high - low) * unit, np.full(n, float(np.prod(high - low)) / n)
    far = stats.t(3, loc=centre, scale=width)
    start, share = far.cdf(low), far.cdf(high) - far.cdf(low)
    points = far.ppf(start + share * unit)
    return points, np.prod(share) / (n * far.pdf(points).prod(axis=1))
