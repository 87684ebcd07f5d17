"""Pictures of fitted models, in the manner of scikit-learn's displays."""

from __future__ import annotations

from fenchel.plotting.fan import FanDisplay

__all__ = ["FanDisplay"]
