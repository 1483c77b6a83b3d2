"""Loads a user's own metrics where no conftest.py applies: in a command, or in a process on another machine."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from pytest_ldos.base.errors import ConfigurationError, LdosError
from pytest_ldos.measure.metrics.own import HOOK, OwnMetric, require_own

_LOADED_AS: Final = "ldos_own_metrics"


@dataclass(frozen=True)
class OwnSource:
    """Location of own metrics, independent of the machine that loads them.

    Attributes:
        given: a file, or a module's name.
        folder: folder from which both are found.
    """

    given: str
    folder: str

    @property
    def file(self) -> Path | None:
        """``None`` for a module."""
        path = Path(self.folder) / self.given
        return path if self.given.endswith(".py") or path.is_file() else None


def load_metrics(given: str | None) -> tuple[OwnMetric, ...]:
    """Metrics registered by a file (``tests/conftest.py``) or a module (``mypackage.metrics``); empty without one.

    Raises:
        ConfigurationError: see `load_own`.
    """
    return () if given is None else load_own(OwnSource(given, str(Path.cwd())))


def load_own(source: OwnSource) -> tuple[OwnMetric, ...]:
    """Loads own metrics: a file is executed again each time, a module is imported as usual.

    Raises:
        ConfigurationError: it is not there, cannot be loaded, or registers something that is no metric.
    """
    given = source.given
    try:
        return require_own(_registering(_load(source), given)())
    except LdosError:
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise ConfigurationError(
            f"{given} cannot be loaded: {type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})",
            remedy="it must be a Python file, or a module that can be imported from here",
        ) from error


def _registering(module: ModuleType, given: str) -> Callable[[], object]:
    found: Callable[[], object] | None = getattr(module, HOOK, None)
    if not callable(found):
        raise ConfigurationError(f"{given} has no function {HOOK}", remedy="let it give a list of OwnMetric")
    return found


def _load(source: OwnSource) -> ModuleType:
    if source.file is not None:
        return _load_file(source.file)
    sys.path.insert(0, source.folder)
    try:
        return importlib.import_module(source.given)
    finally:
        sys.path.remove(source.folder)


def _load_file(file: Path) -> ModuleType:
    """Loads a file as pytest loads a conftest.py: files beside it can be imported."""
    spec = importlib.util.spec_from_file_location(_LOADED_AS, file)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{file} is no Python file", remedy="give one that ends in .py, or a module's name")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent.resolve()))
    sys.modules[_LOADED_AS] = module  # where dataclasses look up the module of a class
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(_LOADED_AS, None)
        raise
    finally:
        sys.path.remove(str(file.parent.resolve()))
    return module
