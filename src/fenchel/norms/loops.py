"""Compiled loops for group norms: lengths of groups, and proxes by one scalar equation each.

``starts`` divides a vector into groups: group j is ``v[starts[j]:starts[j + 1]]``. Proxes are
computed for vectors v >= 0; the caller handles the signs.
"""

from __future__ import annotations

import numpy as np

from fenchel._compiling import njit
from fenchel._typing import FloatArray, IntArray

_ROOT_STEPS = 200
_ROUNDING = 4e-16
_LAST = 1e-9  # relative size of a step of Newton's method after which the next one is rounding
_FAR = 4.0  # on the logarithmic axis: how far a root is looked for where one side is not known


@njit(cache=True, nogil=True, error_model="numpy")
def length(v: FloatArray, q: float) -> float:
    """Return the q-norm."""
    largest = 0.0
    for entry in v:
        largest = max(largest, abs(entry))
    if q == np.inf or largest == 0.0:
        return largest
    total = 0.0
    for entry in v:
        if q == 1.0:
            total += abs(entry)
        elif q == 2.0:
            total += (entry / largest) ** 2
        else:
            total += (abs(entry) / largest) ** q
    if q == 1.0:
        return total
    return largest * (np.sqrt(total) if q == 2.0 else total ** (1.0 / q))


@njit(cache=True, nogil=True, error_model="numpy")
def lengths(v: FloatArray, starts: IntArray, q: float, out: FloatArray) -> None:
    """Write the q-norms of the groups."""
    for j in range(len(out)):
        out[j] = length(v[starts[j] : starts[j + 1]], q)


@njit(cache=True, nogil=True, error_model="numpy")
def max_levels(v: FloatArray, starts: IntArray, t: FloatArray, levels: FloatArray) -> None:
    """Maxima of the proxes of t_j ‖·‖_∞: in each group the c >= 0 with Σ max(0, v - c) = t_j.

    They are zero where there is none.
    """
    for j in range(len(levels)):
        ordered = np.sort(v[starts[j] : starts[j + 1]])[::-1]
        total = 0.0
        levels[j] = 0.0
        for k in range(len(ordered)):
            total += ordered[k]
            candidate = (total - t[j]) / (k + 1)
            if candidate >= ordered[k]:
                break
            levels[j] = max(candidate, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _next(at: float, error: float, slope: float, low: float, high: float) -> float:
    """Newton's next point within the bracket."""
    new = at - error / slope
    if low == -np.inf or high == np.inf:  # steps are far too long where the function is flat
        reach = max(_FAR, abs(at))
        new = min(max(new, at - reach), at + reach)
    if low < new < high or abs(new - at) <= _ROUNDING * max(1.0, abs(at)):
        return new
    if high == np.inf:
        return at + _FAR
    return at - _FAR if low == -np.inf else 0.5 * (low + high)


@njit(cache=True, nogil=True, error_model="numpy")
def entry(v: float, q: float, place: float) -> float:
    """The u >= 0 with u + s u^(q - 1) = v, log s = place.

    By Newton's method for u/v, or for its power q - 1 if q < 2. The equation is convex, and the
    start is above the root. Logarithms are used because s may overflow.
    """
    if v == 0.0:
        return 0.0
    power = q - 1.0
    heavy = place + (power - 1.0) * np.log(v)  # x + exp(heavy) x^power = 1 for x = u/v
    r, first, second = power, 0.0, heavy  # exp(first) x + exp(second) x^r = 1
    if power < 1.0:
        r, first, second = 1.0 / power, heavy, 0.0
    x = np.exp(min(-first, -second / r))
    for _ in range(_ROOT_STEPS):
        if x <= 0.0:
            return 0.0
        part = np.exp(second + r * np.log(x))
        line = np.exp(first) * x
        step = x * (line + part - 1.0) / (line + r * part)
        x -= step
        if not step > _LAST * x:
            break
    return v * (x**r if power < 1.0 else x)


@njit(cache=True, nogil=True, error_model="numpy")
def _on_path(
    v: FloatArray, q: float, place: float, u: FloatArray
) -> tuple[float, float, float, float]:
    """Write the prox u of τ‖·‖_q for the τ that s = exp(place) stands for.

    That is s = τ for q = 1, s = 1/‖u‖ for q = ∞, and else s = τ/‖u‖^(q - 1). Returns log ‖u‖ and
    log τ, and their slopes.
    """
    total, left, active, fall, rise = 0.0, 0.0, 0, 0.0, 0.0
    if q == 1.0:
        for i in range(len(v)):
            u[i] = max(v[i] - np.exp(place), 0.0)
            total += u[i]
            active += u[i] > 0.0
        return np.log(total), place, -active * np.exp(place) / total, 1.0
    if q == np.inf:
        for i in range(len(v)):
            u[i] = min(v[i], np.exp(-place))
            left += v[i] - u[i]
            active += v[i] > u[i]
        return -place, np.log(left), -1.0, active * np.exp(-place) / left
    for i in range(len(v)):
        u[i] = entry(v[i], q, place)
    size = length(u, q)
    for i in range(len(v)):
        if u[i] > 0.0:
            off = v[i] - u[i]
            share = (u[i] / size) ** q / (u[i] + (q - 1.0) * off)
            fall += share * off
            rise += share * u[i]
    return np.log(size), place + (q - 1.0) * np.log(size), -fall, rise


@njit(cache=True, nogil=True, error_model="numpy")
def _in_group(
    v: FloatArray, q: float, p: float, log_a: float, place: float, u: FloatArray
) -> tuple[float, float, float, float]:
    """Write the minimizer u of ½‖u - v‖² + (a/p) ‖u‖_q^p, which is on the path, by its place.

    Returns ‖u‖, the slopes of log ‖u‖ and log τ in log a, and the place, where the next search
    starts.
    """
    dual = 1.0 if q == np.inf else np.inf if q == 1.0 else q / (q - 1.0)
    most = length(v, dual)
    if most == 0.0 or (p == 1.0 and np.log(most) <= log_a):
        u[:] = 0.0
        return 0.0, 0.0, 1.0, place
    low, high = -np.inf, np.inf
    size, fall, rise = 0.0, 0.0, 1.0
    for _ in range(_ROOT_STEPS):
        size, tau, fall, rise = _on_path(v, q, place, u)
        slope = rise - (p - 1.0) * fall
        if size == -np.inf or tau == -np.inf:
            error = np.inf if size == -np.inf else -np.inf
        else:
            error = tau - (p - 1.0) * size - log_a
        low, high = (low, place) if error > 0.0 else (place, high)
        found = _next(place, error, slope, low, high)
        fall, rise = fall / slope, rise / slope
        if abs(found - place) <= _ROUNDING * max(1.0, abs(place)):
            break
        place = found
    if size == -np.inf:  # the root is next to zero
        return 0.0, 0.0, 1.0, place
    return np.exp(size), fall, rise, place


@njit(cache=True, nogil=True, error_model="numpy")
def with_steps(v: FloatArray, starts: IntArray, t: FloatArray, u: FloatArray) -> None:
    """Write the minimizer of Σ_i (u_i - v_i)² / (2 t_i) + Σ_j ‖u_j‖₂.

    In a group u_i = v_i s / (s + t_i), where s = ‖u‖ is the root of Σ v_i² / (s + t_i)² = 1, which
    Newton's method finds from below for the inverse root of the sum: that is nearly linear, and
    concave. It starts where the largest term alone is one, so that none overflows.
    """
    for j in range(len(starts) - 1):
        low, high = starts[j], starts[j + 1]
        s = 0.0
        for i in range(low, high):
            s = max(s, abs(v[i]) - t[i])
        for _ in range(_ROOT_STEPS):
            total, slope = 0.0, 0.0
            for i in range(low, high):
                if v[i] != 0.0:
                    part = (v[i] / (s + t[i])) ** 2
                    total += part
                    slope += part / (s + t[i])
            step = total * (np.sqrt(total) - 1.0) / slope if slope > 0.0 else 0.0
            if not step > _LAST * s:
                s += max(step, 0.0)
                break
            s += step
        for i in range(low, high):
            u[i] = v[i] * (s / (s + t[i])) if s > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def separate(v: FloatArray, starts: IntArray, q: float, t: FloatArray, u: FloatArray) -> None:
    """Write the prox of Σ_j t_j ‖·‖_q."""
    for j in range(len(starts) - 1):
        group = slice(starts[j], starts[j + 1])
        _in_group(v[group], q, 1.0, np.log(t[j]), 0.0, u[group])


@njit(cache=True, nogil=True, error_model="numpy")
def across(
    v: FloatArray, starts: IntArray, q: float, p: float, t: float, bounded: bool, u: FloatArray
) -> None:
    """Write the minimizer of ½‖u - v‖² + (a/p) Σ_j ‖u_j‖_q^p for the root a of an equation.

    With lengths ρ = (Σ_j ‖u_j‖_q^p)^(1/p), that is a ρ^(p - 1) = t, which makes it the prox of t
    times the norm; or ρ = t where it is ``bounded``, which makes it the nearest point with ρ <= t.
    """
    k = len(starts) - 1
    sizes, slopes, places = np.zeros(k), np.zeros(k), np.zeros(k)
    low, high, log_a = -np.inf, np.inf, np.log(t)
    for _ in range(_ROOT_STEPS):
        for j in range(k):
            group = slice(starts[j], starts[j + 1])
            own = _in_group(v[group], q, p, log_a, places[j], u[group])
            sizes[j], places[j] = own[0], own[3]
            slopes[j] = -own[1] if bounded else own[2]
        whole, slope = length(sizes, p), 0.0
        for j in range(k):
            slope += (sizes[j] / whole) ** p * slopes[j]
        error = np.log(t) - np.log(whole)
        if not bounded:
            error = log_a - np.log(t) + (p - 1.0) * np.log(whole)
        low, high = (low, log_a) if error > 0.0 else (log_a, high)
        found = _next(log_a, error, slope, low, high)
        if abs(found - log_a) <= _ROUNDING * max(1.0, abs(log_a)):
            break
        log_a = found
