"""Cross-validation score along the regularization strength."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from fenchel._typing import AnyArray, FloatArray
from fenchel._validation import shown
from fenchel.inspection import short_name
from fenchel.plotting import _style
from fenchel.plotting._display import Display

_DEPTH = 2.0  # depths of the part that matters below which paths leave the picture


@dataclass(frozen=True)
class ScorePath:
    """Scores along one path of increasing strengths with all other parameters fixed."""

    alphas: FloatArray
    mean: FloatArray  # over the folds
    error: FloatArray | None  # standard error of the mean; None for a single fold
    others: dict[str, Any]  # the other parameters


@dataclass(eq=False, repr=False)
class PathDisplay(Display):
    """Cross-validation score along the regularization strength, with the selected strength.

    The path with the best score is drawn with standard errors over folds, and the paths of other
    parameters in pale. Two choices are marked: the best mean score, and the largest strength with
    a score within one standard error of it (one-standard-error rule). The strength selected by the
    estimator is filled.

    Parameters
    ----------
    paths : list of ScorePath
        All paths.
    best : int
        Index of the path that is drawn with standard errors.
    chosen : float
        Strength selected by the estimator on that path.
    parameter, score_name : str
        Labels of the axes.

    Attributes
    ----------
    line_, band_ : line, collection or None
        Mean score of the best path, and one standard error on each side.
    others_ : list of line
        The other paths.
    best_, one_standard_error_, chosen_ : line or None
        Markers of the choices.
    threshold_ : line or None
        Line at one standard error below the best score.
    best_alpha, one_standard_error_alpha : float, float or None
        The two choices. The second is None if the folds give no standard error.

    References
    ----------
    Breiman, Friedman, Olshen, Stone (1984), Classification and regression trees, section 3.4.3.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from fenchel.datasets import load_engel
    >>> from fenchel import KernelRidge
    >>> from fenchel.model_selection import PathSearchCV
    >>> from fenchel.plotting import PathDisplay
    >>> X, y = load_engel(return_X_y=True, as_frame=True)
    >>> rule = "one_standard_error"
    >>> model = PathSearchCV(KernelRidge(), {"alpha": 10}, selection=rule).fit(X, y)
    >>> display = PathDisplay.from_estimator(model, ax=Figure().add_subplot())
    >>> display.one_standard_error_alpha == model.alpha_
    True
    """

    _figsize = (6.4, 4.8)

    paths: list[ScorePath]
    best: int
    chosen: float
    _: KW_ONLY
    parameter: str = "alpha"
    score_name: str = "score"

    def __post_init__(self) -> None:
        path = self.paths[self.best]
        top = int(np.nanargmax(path.mean))
        self.best_alpha = float(path.alphas[top])
        self.one_standard_error_alpha: float | None = None
        if path.error is not None:
            within = np.flatnonzero(path.mean >= path.mean[top] - path.error[top])
            self.one_standard_error_alpha = float(path.alphas[within[-1]])

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        parameter: str | None = None,
        score_name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Create the plot of a fitted search.

        Parameters
        ----------
        estimator : estimator
            Fitted search with ``cv_results_`` and ``best_index_``, from
            ``fenchel.model_selection`` or scikit-learn.
        parameter : str, optional
            Name of the strength in ``cv_results_["params"]``; by default the name "alpha" or one
            ending in "__alpha".
        score_name : str, optional
            Label of the vertical axis; the scoring of the search by default.
        ax : matplotlib axes, optional
            Axes to draw on; a new pyplot figure by default.

        Raises
        ------
        ValueError
            If the estimator has no search results, or none for this parameter.
        """
        if not hasattr(estimator, "cv_results_"):
            raise ValueError(
                "estimator must be fitted and have cv_results_, the scores of its search, got "
                f"{type(estimator).__name__}"
            )
        results = estimator.cv_results_
        name = _strength(results["params"], parameter)
        paths, members = _paths(results, name)
        index = int(estimator.best_index_)
        best = next(k for k, member in enumerate(members) if index in member)
        if score_name is None:
            scoring = getattr(estimator, "scoring_", getattr(estimator, "scoring", None))
            score_name = scoring if isinstance(scoring, str) else "score"
        folds = len(_splits(results))
        label = f"{short_name(score_name, 24)}, mean of {folds} folds"
        if folds == 1:
            label = "minus the leave-one-out error" if score_name == "loo" else score_name
        chosen = float(results["params"][index][name])
        return cls(paths, best, chosen, parameter=name, score_name=label).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        path = self.paths[self.best]
        self.others_ = [
            ax.plot(other.alphas, other.mean, color=_style.PALE, lw=1, zorder=1)[0]
            for k, other in enumerate(self.paths)
            if k != self.best
        ]
        (self.line_,) = ax.plot(
            path.alphas, path.mean, color=_style.BLUE, lw=1.8, marker="o", ms=3, zorder=3
        )
        self.band_ = self.threshold_ = self.one_standard_error_ = None
        shown = [(self.line_, "mean over folds" if path.error is not None else "score")]
        if path.error is not None:
            low, high = path.mean - path.error, path.mean + path.error
            self.band_ = ax.fill_between(
                path.alphas, low, high, color=_style.SKY, alpha=0.3, linewidth=0, zorder=2
            )
            shown.append((self.band_, "one standard error"))
        shown += self._choices()
        if self.others_:
            shown.append((self.others_[0], "other parameters"))
        ax.set_xscale("log")
        ax.set_ylim(self._limits())
        note = ", ".join(
            f"{short_name(name, 24)} = {_value(value)}" for name, value in path.others.items()
        )
        _style.label_axes(ax, self.parameter, self.score_name, note)
        # below, as bands and paths leave no corner free
        _style.legend(
            ax,
            shown,
            loc="upper left",
            bbox_to_anchor=(-0.1, -0.15),
            ncols=2,
            columnspacing=1.2,
            fontsize="small",
        )

    def _limits(self) -> tuple[float, float] | None:
        """Where the picture ends: far worse scores would press the rest of it into a line."""
        path = self.paths[self.best]
        top = float(np.nanmax(path.mean))
        error = 0.0 if path.error is None else float(path.error[int(np.nanargmax(path.mean))])
        shown = np.array([path.mean[-1], self._score_at(self.chosen), top - 4.0 * error])
        depth = top - float(np.nanmin(shown))
        lowest = min(float(np.nanmin(each.mean)) for each in self.paths)
        if not top - lowest > _DEPTH * depth > 0.0:
            return None
        return top - 1.3 * depth, top + max(0.15 * depth, 1.3 * error)

    def _score_at(self, alpha: float) -> float:
        path = self.paths[self.best]
        return float(path.mean[int(np.argmin(np.abs(path.alphas - alpha)))])

    def _choices(self) -> Iterator[tuple[Any, str]]:
        """Mark the choices: the marks and their names."""
        path = self.paths[self.best]
        candidates = [(self.best_alpha, "best_", "D", _style.BLACK, "best")]
        if self.one_standard_error_alpha is not None and path.error is not None:
            top = int(np.nanargmax(path.mean))
            self.threshold_ = self.ax_.axhline(
                path.mean[top] - path.error[top], color=_style.GREY, lw=1, ls="--", zorder=2
            )
            simple = self.one_standard_error_alpha
            candidates.append(
                (simple, "one_standard_error_", "s", _style.VERMILION, "one-standard-error choice")
            )
        self.chosen_: Any = None
        for alpha, attribute, marker, color, name in candidates:
            taken = alpha == self.chosen
            mark = self._mark(alpha, marker, color, taken)
            setattr(self, attribute, mark)
            if taken and self.chosen_ is None:
                self.chosen_ = mark
            yield mark, f"{name}: {alpha:.3g}" + (" (taken)" if taken else "")
        if self.chosen_ is None:
            self.chosen_ = self._mark(self.chosen, "^", _style.GREEN, True)
            yield self.chosen_, f"taken: {self.chosen:.3g}"

    def _mark(self, alpha: float, marker: str, color: str, filled: bool) -> Any:
        height = self._score_at(alpha)
        inside = color if filled else "white"
        return self.ax_.plot(
            [alpha], [height], marker, ms=8, mec=color, mfc=inside, mew=1.5, zorder=4
        )[0]


def _strength(params: list[dict[str, Any]], parameter: str | None) -> str:
    names = list(params[0])
    if parameter is None:
        found = [name for name in names if name == "alpha" or name.endswith("__alpha")]
        if len(found) != 1:
            raise ValueError(f"parameter must be one of {', '.join(names)}, got None")
        return found[0]
    if parameter not in names:
        raise ValueError(f"parameter must be one of {', '.join(names)}, got {shown(parameter)}")
    return parameter


def _splits(results: dict[str, Any]) -> list[AnyArray]:
    """Scores of each fold."""
    names = sorted(name for name in results if name.startswith("split"))
    return [np.asarray(results[n], dtype=np.float64) for n in names if n.endswith("_test_score")]


def _paths(results: dict[str, Any], name: str) -> tuple[list[ScorePath], list[list[int]]]:
    """One path for each setting of the other parameters, and its places in the results."""
    params = results["params"]
    members: dict[str, list[int]] = {}
    for k, point in enumerate(params):
        setting = repr(sorted((key, repr(value)) for key, value in point.items() if key != name))
        members.setdefault(setting, []).append(k)
    mean = np.asarray(results["mean_test_score"], dtype=np.float64)
    folds = np.array(_splits(results))
    error = folds.std(axis=0, ddof=1) / np.sqrt(len(folds)) if len(folds) > 1 else None
    varied = [key for key in params[0] if len({repr(point[key]) for point in params}) > 1]
    paths = []
    for member in members.values():
        alphas = np.array([params[k][name] for k in member], dtype=np.float64)
        order = np.argsort(alphas)
        place = np.array(member)[order]
        others = {key: params[member[0]][key] for key in varied if key != name}
        errors = None if error is None else error[place]
        paths.append(ScorePath(alphas[order], mean[place], errors, others))
    return paths, list(members.values())


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else short_name(value, 24)
