"""The names of losses, shared by all estimators, and the construction of losses from names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fenchel._typing import FloatArray
from fenchel._validation import ORDER, SHARE, Constraint, OneOf, That
from fenchel.losses.atoms import (
    Absolute,
    Huber,
    L2Norm,
    Pinball,
    Squared,
    SquaredPinball,
    check_kappa,
)
from fenchel.losses.base import Loss, check_epsilon
from fenchel.losses.box import BoxQuadratic
from fenchel.losses.curves import CurveHuber, CurveInsensitive, Pointwise, check_measure

_TUBE, _LINEAR = 0.1, 0.5  # of the spread of targets


class LossParameters(NamedTuple):
    """The parameters of named losses; each loss uses only its own."""

    kappa: float = 1.0
    """κ > 0 of "huber": the residual at which it becomes linear, in the units of y."""
    epsilon: float = 0.1
    """ε >= 0 of the insensitive losses: largest residual with zero loss, in the units of y."""
    level: float = 0.5
    """τ in (0, 1) of "pinball" and "squared_pinball"."""


class NamedLoss(NamedTuple):
    """A loss that estimators accept by name."""

    reads: tuple[str, ...]
    """Names of the :class:`LossParameters` that the loss uses."""
    single: Callable[[LossParameters], Loss]
    """The loss of one output."""
    several: Callable[[LossParameters], Loss] | None = None
    """The loss of several outputs, if it is another one."""
    curves: Callable[[LossParameters, float, FloatArray], Loss] | None = None
    """The loss of curves, from p of the L^p norm and the measure, if it depends on a norm."""


def _length_of_curves(parameters: LossParameters, norm: float, measure: FloatArray) -> Loss:
    if norm != 2.0:
        raise ValueError(
            f"norm must be 2 with loss='epsilon_insensitive', got {norm:g}: point by point it is "
            "the loss Absolute().insensitive(epsilon)"
        )
    return L2Norm().insensitive(parameters.epsilon)


LOSSES: dict[str, NamedLoss] = {
    "squared": NamedLoss((), lambda p: Squared()),
    "absolute": NamedLoss((), lambda p: Absolute()),
    "epsilon_insensitive": NamedLoss(
        ("epsilon",),
        lambda p: Absolute().insensitive(p.epsilon),
        lambda p: L2Norm().insensitive(p.epsilon),
        _length_of_curves,
    ),
    "squared_epsilon_insensitive": NamedLoss(
        ("epsilon",),
        lambda p: Squared().insensitive(p.epsilon),
        curves=lambda p, norm, measure: CurveInsensitive(p.epsilon, norm, measure),
    ),
    "huber": NamedLoss(
        ("kappa",),
        lambda p: Huber(p.kappa),
        lambda p: Squared().huber(p.kappa, norm=2),
        lambda p, norm, measure: CurveHuber(p.kappa, norm, measure),
    ),
    "pinball": NamedLoss(
        ("level",),
        lambda p: Pinball(p.level),
        lambda p: BoxQuadratic(p.level - 1.0, p.level, 0.0, 0.0),
    ),
    "squared_pinball": NamedLoss(
        ("level",),
        lambda p: SquaredPinball(p.level),
        lambda p: BoxQuadratic(-float("inf"), float("inf"), 1.0 / (1.0 - p.level), 1.0 / p.level),
    ),
}
"""All names. A further one is ``"poisson"``, a loss of predictions, see
:class:`fenchel.positive.NonNegativeRegressor`."""


def loss_choice(*others: str) -> Constraint:
    """Return the valid values of a parameter ``loss``: names, including ``others``, or losses."""
    return OneOf(others, LOSSES) | That("a Loss", lambda loss: isinstance(loss, Loss))


def spread_of(distances: FloatArray, weight: FloatArray) -> float:
    """Robust scale of targets with distances (n, p) from their medians.

    1.4826 times the median distance, averaged over outputs. This is the standard deviation if
    targets are normal. If it is zero, the mean distance is returned, or 1 if all are equal.
    """
    middle = float(Absolute().minimizing_offset(distances, weight).mean())
    return 1.4826 * middle or float(np.average(distances.mean(axis=1), weights=weight)) or 1.0


def thresholds(kappa: float | None, epsilon: float | None, spread: float) -> tuple[float, float]:
    """Return κ and ε as given; by default half and a tenth of the spread of targets."""
    return (
        _LINEAR * spread if kappa is None else float(kappa),
        _TUBE * spread if epsilon is None else float(epsilon),
    )


def measured_thresholds(
    kappa: float | None, epsilon: float | None, targets: FloatArray, weight: FloatArray
) -> tuple[float, float]:
    """Return κ and ε as given; by default half and a tenth of the spread of targets (n, p).

    For constant targets, which have no spread, ε is zero and κ half of their size.
    """
    if None not in (kappa, epsilon):
        return thresholds(kappa, epsilon, 1.0)
    away = np.abs(targets - Absolute().minimizing_offset(targets, weight))
    if away.any():
        return thresholds(kappa, epsilon, spread_of(away, weight))
    size = float(np.average(np.abs(targets).mean(axis=1), weights=weight))
    return thresholds(kappa, 0.0 if epsilon is None else epsilon, size or 1.0)


def make_loss(
    loss: str | Loss,
    n_outputs: int | None = 1,
    *,
    kappa: float = 1.0,
    epsilon: float = 0.1,
    level: float = 0.5,
    others: Sequence[str] = (),
) -> Loss:
    r"""Return the loss of a name, or the given loss.

    ===================================  ====================================  ===========
    name                                 ℓ(ξ), with \|ξ\| the length            reads
    ===================================  ====================================  ===========
    ``"squared"``                        ½\|ξ\|²
    ``"absolute"``                       Σ \|ξ_j\|
    ``"epsilon_insensitive"``            max(0, \|ξ\| - ε)                     ``epsilon``
    ``"squared_epsilon_insensitive"``    ½ max(0, \|ξ\| - ε)²                  ``epsilon``
    ``"huber"``                          ½\|ξ\|² up to κ, κ\|ξ\| - ½κ² beyond  ``kappa``
    ``"pinball"``                        Σ max(τξ_j, (τ - 1)ξ_j)               ``level``
    ``"squared_pinball"``                ½ Σ \|τ - 1(ξ_j < 0)\| ξ_j²           ``level``
    ===================================  ====================================  ===========

    Parameters
    ----------
    loss : str or Loss
        A name of the table, or a loss, which is returned unchanged.
    n_outputs : int or None
        Number of outputs; None, if it is not known yet, only checks the parameters.
    kappa, epsilon, level : float
        κ > 0, ε >= 0, τ in (0, 1).
    others : sequence of str
        Other names that the caller accepts, for the error message.

    Returns
    -------
    Loss

    Raises
    ------
    ValueError
        If the name is unknown, a parameter is invalid, or the given loss has another number of
        outputs.

    Examples
    --------
    >>> from fenchel.losses import make_loss
    >>> make_loss("huber", kappa=2.0)
    Huber(2)
    >>> make_loss("epsilon_insensitive", 3)
    L2Norm().insensitive(0.1)
    """
    parameters = _checked(kappa, epsilon, level)
    if isinstance(loss, Loss):
        if n_outputs is not None and loss.n_outputs not in (None, n_outputs):
            raise ValueError(f"loss is made for {loss.n_outputs} outputs, but y has {n_outputs}")
        return loss
    named = _named(loss, others)
    if n_outputs in (None, 1) or named.several is None:
        return named.single(parameters)
    return named.several(parameters)


def parameters_of(loss: object) -> tuple[str, ...]:
    """Return the names of the parameters that a named loss uses; empty for a loss object.

    Examples
    --------
    >>> from fenchel.losses import parameters_of
    >>> parameters_of("huber")
    ('kappa',)
    """
    return LOSSES[loss].reads if isinstance(loss, str) and loss in LOSSES else ()


def curve_loss(
    loss: str | Loss,
    measure: npt.ArrayLike,
    norm: float = 2.0,
    *,
    kappa: float = 1.0,
    epsilon: float = 0.1,
    level: float = 0.5,
) -> Loss:
    r"""Return a loss of residual curves, in coordinates scaled by √μ.

    The names are those of :func:`make_loss`, with :math:`\|\xi\|` the norm of L²(μ). "huber" is
    :class:`CurveHuber` and "squared_epsilon_insensitive" :class:`CurveInsensitive`, in the L^p
    norm for ``norm`` = p. "absolute", "pinball" and "squared_pinball" are integrals over the
    points. A loss object that depends only on the length of the residual is applied to the norm.
    Any other loss of one output is integrated over the points, see :class:`Pointwise`.

    Parameters
    ----------
    loss : str or Loss
        A name, or a loss: of one output, of any number of outputs, or of curves.
    measure, norm
        As in :class:`CurveHuber`. ``norm`` is used only by "huber" and
        "squared_epsilon_insensitive".
    kappa, epsilon, level : float
        As in :func:`make_loss`.

    Returns
    -------
    Loss

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Huber, curve_loss
    >>> curve_loss(Huber(2.0), np.full(4, 0.25))
    Pointwise(..., measure of 4 points)
    >>> curve_loss("huber", np.full(4, 0.25), norm=1, kappa=2.0)
    CurveHuber(kappa=2, norm=1, measure of 4 points)
    """
    weights, order = check_measure(measure), ORDER(norm, "norm")
    parameters = _checked(kappa, epsilon, level)
    if not isinstance(loss, Loss):
        named = _named(loss)
        if named.curves is not None:
            return named.curves(parameters, order, weights)
        loss = named.single(parameters)
    whole = loss.on_curves(weights)
    return Pointwise(loss, weights) if whole is None else whole


def _named(loss: object, others: Sequence[str] = ()) -> NamedLoss:
    """The entry of a name."""
    loss_choice(*others)(loss, "loss")
    return LOSSES[str(loss)]


def _checked(kappa: float, epsilon: float, level: float) -> LossParameters:
    """The parameters as numbers, all of them allowed, whether the loss reads them or not."""
    return LossParameters(check_kappa(kappa), check_epsilon(epsilon), SHARE(level, "level"))
