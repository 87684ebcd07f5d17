"""Parameters of estimators as a list: each stands once, with its type and its default."""

from __future__ import annotations

from dataclasses import KW_ONLY
from inspect import Parameter, Signature, get_annotations
from typing import Any, TypeVar, dataclass_transform

_Kind = TypeVar("_Kind", bound=type)
_OWN = "_own_parameters"


@dataclass_transform(eq_default=False)
def parameters(kind: _Kind) -> _Kind:
    """Decorate a class: its annotated attributes are the parameters of its constructor.

    All have defaults, and after ``_: KW_ONLY`` they are given by name alone. Those of the bases
    that are decorated follow; a class that repeats one gives it another default, or a place. The
    constructor stores what it is given and does nothing else, as scikit-learn asks. What a fit
    sets is not annotated in such a class: type checkers would take it for a parameter.

    Examples
    --------
    >>> from dataclasses import KW_ONLY
    >>> from fenchel._parameters import parameters
    >>> @parameters
    ... class Solved:
    ...     _: KW_ONLY
    ...     tol: float = 1e-6
    >>> @parameters
    ... class Model(Solved):
    ...     alpha: float = 1.0
    >>> Model(0.1).alpha, Model(tol=1e-3).tol
    (0.1, 0.001)
    """
    setattr(kind, _OWN, _annotated(kind))
    lists = [vars(base)[_OWN] for base in kind.__mro__ if _OWN in vars(base)]
    whole = {each.name: each for some in reversed(lists) for each in some}
    named = {each.name: whole[each.name] for some in lists for each in some}
    order = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD), *named.values()]
    signature = Signature(sorted(order, key=lambda each: each.kind), return_annotation=None)
    defaults = {each.name: each.default for each in named.values()}
    places = [each.name for each in named.values() if each.kind is not Parameter.KEYWORD_ONLY]

    def __init__(self: Any, *values: Any, **options: Any) -> None:
        given = dict(zip(places, values, strict=False))
        if len(values) > len(places) or given.keys() & options or options.keys() - defaults:
            try:
                signature.bind(self, *values, **options)
            except TypeError as error:
                raise TypeError(f"{type(self).__name__}() {error}") from None
        vars(self).update({**defaults, **given, **options})

    __init__.__signature__ = signature  # type: ignore[attr-defined]  # which inspect reads
    kind.__init__ = __init__  # type: ignore[misc]  # of this class, and no instance
    return kind


def _annotated(kind: type) -> list[Parameter]:
    """The parameters that a class itself adds or repeats, in their order."""
    found: list[Parameter] = []
    by_name = False
    for name, annotation in get_annotations(kind).items():
        if annotation in (KW_ONLY, "KW_ONLY"):
            by_name = True
        elif name in vars(kind) and not str(annotation).startswith("ClassVar"):
            way = Parameter.KEYWORD_ONLY if by_name else Parameter.POSITIONAL_OR_KEYWORD
            default = vars(kind)[name]
            found.append(Parameter(name, way, default=default, annotation=annotation))
    return found
