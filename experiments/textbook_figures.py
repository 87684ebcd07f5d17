"""Figures 11.3 to 11.6 of Mohri, Rostamizadeh, Talwalkar, Foundations of Machine Learning.

11.3: least squares in one dimension. 11.4: the tube of support vector regression. 11.5: losses
that go with it. 11.6: why the Lasso gives zeros and ridge regression does not. The book's drawings
are sketches; these are fits of the library to data that ship with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import harness
from experiments.drawing import BLUE, GREEN, GREY, VERMILION, without_box
from fenchel import SVR, Lasso, LinearRegression, Ridge
from fenchel.kernels import Gaussian
from fenchel.losses import Absolute, Huber, Squared

NAME = "textbook_figures"
TUBE = 0.5
LOSS_EPSILON, LOSS_KAPPA = 0.5, 0.7
RADIUS = 0.45

PAGE = """\
# Four figures of chapter 11

Figures 11.3 to 11.6 of Mohri, Rostamizadeh, Talwalkar, *Foundations of Machine Learning*, with
fits in place of sketches.

    python -m experiments.textbook_figures

![](picture.png)

- **11.3**: `LinearRegression` on Engel's data, standardized. R² = {r2:.3f}; relative gap of the
  fit {gap_line:.0e}.
- **11.4**: `SVR(epsilon={tube:g})` on the motorcycle data, standardized. Rows inside the tube have
  no dual coefficient: {inside} of {rows} are inside, {support} carry the curve. Relative gap
  {gap_tube:.0e}.
- **11.5**: losses as `fenchel.losses` has them, with ½ξ² for the square: ε-insensitive, quadratic
  ε-insensitive (ε = {epsilon:g}), and Huber's (κ = {kappa:g}).
- **11.6**: half the mean squared error of the width of crabs' shells from front lobe and rear
  width (all standardized), in contours, and its minimizers on the ℓ₁ and ℓ₂ balls of radius
  {radius:g}. `Lasso(radius={radius:g})` has the coefficients ({lasso[0]:.3f}, {lasso[1]:.3f}), the
  second of them exactly zero; `Ridge`, with alpha chosen so that its norm is {radius:g}, has
  ({ridge[0]:.3f}, {ridge[1]:.3f}).
"""


def losses(n: int) -> pd.DataFrame:
    """The losses of Figure 11.5 on a grid of residuals."""
    residual = np.linspace(-2.5, 2.5, n)
    drawn = {
        "square": Squared(),
        "ε-insensitive": Absolute().insensitive(LOSS_EPSILON),
        "quadratic ε-insensitive": Squared().insensitive(LOSS_EPSILON),
        "Huber": Huber(LOSS_KAPPA),
    }
    values = {name: loss.value(residual[:, None]) for name, loss in drawn.items()}
    return pd.DataFrame({"residual": residual, **values})


def line(axes: Axes) -> LinearRegression:
    """Figure 11.3."""
    X, y = harness.standardized("engel")
    model = LinearRegression().fit(X, y)
    ends = np.array([[X.min()], [X.max()]])
    axes.vlines(X[:, 0], y, model.predict(X), color=GREY, linewidth=0.6)
    axes.plot(X[:, 0], y, "o", color=BLUE, markersize=3)
    axes.plot(ends[:, 0], model.predict(ends), color=VERMILION)
    axes.set(title="11.3: least squares", xlabel="income", ylabel="food expenditure")
    return model


def tube(axes: Axes) -> SVR:
    """Figure 11.4."""
    X, y = harness.standardized("mcycle")
    model = SVR(alpha=1e-3, epsilon=TUBE, kernel=Gaussian(0.4)).fit(X, y)
    grid = np.linspace(X.min(), X.max(), 300)[:, None]
    curve = model.predict(grid)
    axes.fill_between(grid[:, 0], curve - TUBE, curve + TUBE, color="0.9")
    axes.plot(grid[:, 0], curve, color="black")
    out = np.zeros(len(y), dtype=bool)
    out[model.support_] = True
    axes.plot(X[~out, 0], y[~out], "o", color=BLUE, markersize=3, label="no dual coefficient")
    axes.plot(X[out, 0], y[out], "s", color=VERMILION, markersize=3, label="support vector")
    axes.set(title="11.4: the ε-tube", xlabel="time", ylabel="acceleration")
    axes.legend(frameon=False, fontsize=8)
    return model


def balls(axes: Axes) -> tuple[np.ndarray, np.ndarray]:
    """Figure 11.6: coefficients of Lasso and ridge of the same radius."""
    X, y = harness.standardized("crabs")
    X = X[:, [2, 3]]  # front lobe and rear width
    whole = LinearRegression().fit(X, y)
    lasso = Lasso(radius=RADIUS, tol=1e-10).fit(X, y).coef_
    ridge = _ridge_of_norm(X, y, RADIUS)
    grid = np.linspace(-0.75, 1.25, 161)
    first, second = np.meshgrid(grid, grid)
    away = np.stack([first, second], -1) - whole.coef_
    value = 0.5 * np.einsum("abi,ij,abj->ab", away, X.T @ X / len(X), away)
    touching = [
        0.5 * (w - whole.coef_) @ (X.T @ X / len(X)) @ (w - whole.coef_) for w in (lasso, ridge)
    ]
    axes.contour(first, second, value, levels=sorted({*touching, 0.002, 0.02}), colors="0.6")
    angle = np.linspace(0.0, 2.0 * np.pi, 400)
    axes.plot(RADIUS * np.cos(angle), RADIUS * np.sin(angle), color=GREEN)
    corners = RADIUS * np.array([[1, 0], [0, 1], [-1, 0], [0, -1], [1, 0]])
    axes.plot(*corners.T, color=VERMILION)
    axes.plot(*lasso, "s", color=VERMILION, label="Lasso")
    axes.plot(*ridge, "o", color=GREEN, label="ridge")
    axes.plot(*whole.coef_, "*", color="black", label="least squares")
    axes.axhline(0.0, color="0.8", linewidth=0.6, zorder=0)
    axes.axvline(0.0, color="0.8", linewidth=0.6, zorder=0)
    axes.set(title="11.6: ℓ₁ and ℓ₂ balls", xlabel="w₁", ylabel="w₂", aspect="equal")
    axes.set(xticks=[-0.5, 0.0, 0.5, 1.0], yticks=[-0.5, 0.0, 0.5, 1.0])
    axes.legend(frameon=False, fontsize=8)
    return lasso, ridge


def _ridge_of_norm(X: np.ndarray, y: np.ndarray, norm: float) -> np.ndarray:
    """Coefficients of ridge regression with a norm, by bisection in the logarithm of alpha."""
    low, high = 1e-8, 1e8
    for _ in range(100):
        alpha = np.sqrt(low * high)
        coef = Ridge(alpha=alpha).fit(X, y).coef_
        low, high = (alpha, high) if np.linalg.norm(coef) > norm else (low, alpha)
    return coef


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table of losses, the picture and the page."""
    asked = harness.arguments(NAME, __doc__, 1, argv)
    table = losses(61 if asked.quick else 301)
    figure = Figure(figsize=(10.0, 8.5), layout="constrained")
    axes = figure.subplots(2, 2)
    regression, machine = line(axes[0, 0]), tube(axes[0, 1])
    styles = zip(table.columns[1:], (GREY, VERMILION, BLUE, GREEN), strict=True)
    for name, color in styles:
        axes[1, 0].plot(table.residual, table[name], color=color, label=name)
    axes[1, 0].set(title="11.5: losses", xlabel="residual", ylabel="loss", ylim=(-0.05, 3.0))
    axes[1, 0].legend(frameon=False, fontsize=8)
    lasso, ridge = balls(axes[1, 1])
    for each in axes.flat:
        without_box(each)
    X, y = harness.standardized("engel")
    rows = len(harness.standardized("mcycle")[1])
    text = PAGE.format(
        r2=regression.score(X, y),
        gap_line=regression.certificate_.relative_gap,
        tube=TUBE,
        inside=rows - len(machine.support_),
        rows=rows,
        support=len(machine.support_),
        gap_tube=machine.certificate_.relative_gap,
        epsilon=LOSS_EPSILON,
        kappa=LOSS_KAPPA,
        radius=RADIUS,
        lasso=lasso,
        ridge=ridge,
    )
    asked.write(table, figure, text)


if __name__ == "__main__":
    main()
