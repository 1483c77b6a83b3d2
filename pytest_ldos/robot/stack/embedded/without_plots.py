"""TOPP-RA without matplotlib, which it imports for plots: a third of a second in each start of a planner."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

_PACKAGE = "matplotlib"


@contextmanager
def _unneeded() -> Iterator[None]:
    """Stands in for matplotlib while others import it, unless it is there already."""
    if _PACKAGE in sys.modules:
        yield
        return
    plots, package = ModuleType(f"{_PACKAGE}.pyplot"), ModuleType(_PACKAGE)
    package.pyplot = plots  # type: ignore[attr-defined]
    stand_ins = {_PACKAGE: package, plots.__name__: plots}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name in stand_ins:
            del sys.modules[name]


with _unneeded():
    from toppra import SplineInterpolator, algorithm, constraint
    from toppra.interpolator import AbstractGeometricPath

__all__ = ["AbstractGeometricPath", "SplineInterpolator", "algorithm", "constraint"]
