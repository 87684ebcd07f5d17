"""Online regression: rows are learned one by one or in blocks with ``partial_fit``.

Use :func:`fenchel.datasets.stream` for files that do not fit into memory::

    for X, y in stream("rides.csv", target="price"):
        model.partial_fit(X, y)
"""

from fenchel.online.dual import OnlineQuadraticSVR, OnlineSVR
from fenchel.online.linear import OnlineLasso, OnlineRidge, WidrowHoff

__all__ = ["OnlineLasso", "OnlineQuadraticSVR", "OnlineRidge", "OnlineSVR", "WidrowHoff"]

__dir__ = __all__.copy
