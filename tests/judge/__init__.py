"""An independent judge of certificates.

It shares no code with the library: kernels, losses, conjugates, objectives and dual values are
its own, in extended precision. Of a fitted estimator it reads what the docstrings name, and what
``predict`` says, and never the weights of features.
"""

from __future__ import annotations

from judge.findings import Finding

__all__ = ["Finding"]
