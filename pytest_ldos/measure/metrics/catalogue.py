"""Catalogue of metrics: built-in, declared and user-defined ones."""

from __future__ import annotations

import importlib
import importlib.util
import math
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from itertools import count
from numbers import Real
from operator import index
from pathlib import Path
from types import ModuleType
from typing import Any, Final, SupportsIndex, TypeVar

from pytest_ldos.base.errors import ConfigurationError, LdosError, require
from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.measure.metrics.declared import declare
from pytest_ldos.measure.metrics.latency import (
    CALL,
    CALL_P99,
    EXECUTION,
    OF_PLANS,
    PLANNING,
    REACTION,
    T1,
    T1_MEAN,
    T2,
    T2X,
    T4,
    WHOLE,
)
from pytest_ldos.measure.metrics.model import OWN_SHARES, MeasuredMetric, Measurement, Metric, TrialContext, Window
from pytest_ldos.measure.metrics.regularity import T3, T3_MEAN, T3_P90, T3_P99, T5, T5_MEAN, T5_P99
from pytest_ldos.scenario.metrics import MetricSpec
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import Simulation, StimulusKind

HOOK: Final = "pytest_ldos_metrics"
"""Name of the function by which a plugin, a conftest.py or a module registers metrics."""

_ARGUMENTS: Final = {"measure": ("context", "window"), "window": ("context",)}  # positional, of a metric's functions
_LONGEST_REASON: Final = 200
_LONGEST_SHOWN: Final = 60
_LAST_MOMENT_NS: Final = 2**63

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class OwnMetric(Metric):
    """A user-defined metric; measured, recorded, judged and reported like T1 to T5.

    Attributes:
        measure: called with the trial's context and the window, once per trial. Returns a number of 0 or more
            in the metric's unit, or `Missing` with a reason. Any other result or an exception makes that trial's
            value invalid; the run continues.
        window: time span of the measurement: `TrialContext.trial_window` (from the goal to its result),
            `TrialContext.execution_window`, `TrialContext.planning_window`, or a function that returns the first and
            the last nanosecond. If the trace lost events within it, the value is invalid; if the trial has no such
            window, the value is missing. In both cases, `measure` is not called.

    Raises:
        ConfigurationError: see `Metric`.
    """

    measure: Callable[[TrialContext, Window], float | Missing]
    window: Callable[[TrialContext], Window | Missing] = TrialContext.trial_window

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("measure", "window"):
            value = getattr(self, name)
            require(callable(value), f"{name} of metric '{self.name}' is {value!r}", remedy="it must be a function")
            _require_arguments(value, _ARGUMENTS[name], f"{name} of metric '{self.name}' ({self.origin})")

    @property
    def origin(self) -> str:
        """Location of its function: ``conftest.py:12``."""
        code = getattr(self.measure, "__code__", None)
        return f"{Path(code.co_filename).name}:{code.co_firstlineno}" if code else type(self.measure).__name__

    def to_measured(self, *, error_share: float) -> MeasuredMetric:
        """Converts the metric; results and exceptions of its functions become values."""
        described = {**vars(self.description), "error_share": error_share}

        def window(context: TrialContext) -> Window | Missing | Invalid:
            return self._guard(lambda: self._checked_window(self.window(context)), self.window)

        def measure(context: TrialContext, window: Window) -> Measurement:
            return Measurement(self._guard(lambda: self._checked(self.measure(context, window)), self.measure))

        return MeasuredMetric(**described, window=window, measure=measure)

    def _guard(self, call: Callable[[], Result], function: Callable[..., Any]) -> Result | Invalid:
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - any exception of a user's function concerns this value alone
            reason = f"{type(error).__name__}: {error}".splitlines()[0][:_LONGEST_REASON]
            return Invalid(f"{self.name} could not be taken: {reason} ({_where(error, function)})")

    def _checked_window(self, found: Any) -> Window | Missing | Invalid:
        match found:
            case Missing() | Invalid():
                return _with_text(found)
            case (SupportsIndex() as first, SupportsIndex() as last):
                window = index(first), index(last)
                if 0 <= window[0] <= window[1] < _LAST_MOMENT_NS:
                    return window
                wanted = "it must begin before it ends, in nanoseconds since the epoch"
                return Invalid(f"the window of {self.name} is {_shown(window)}; {wanted}")
        return Invalid(f"the window of {self.name} is {_shown(found)}; it must be two whole numbers of nanoseconds")

    def _checked(self, found: Any) -> float | Missing | Invalid:
        if isinstance(found, Missing | Invalid):
            return _with_text(found)
        if not isinstance(found, Real) or isinstance(found, bool):
            wanted = "it must give a number, or Missing with the reason"
            return Invalid(f"the function of {self.name} ({self.origin}) gave {_shown(found)}; {wanted}")
        try:
            value = float(found)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value) or value < 0:
            wanted = "it must give a finite number of 0 or more"
            return Invalid(f"the function of {self.name} ({self.origin}) gave {value:g}; {wanted}")
        return value


def _require_arguments(function: Callable[..., Any], arguments: tuple[str, ...], what: str) -> None:
    """Refuses a function that cannot take these arguments; one without a signature is tried later."""
    try:
        parameters = signature(function)
    except (TypeError, ValueError):
        return
    try:
        parameters.bind(*arguments)
    except TypeError as error:
        raise ConfigurationError(
            f"{what} cannot be called with ({', '.join(arguments)}): {error}",
            remedy=f"give it these parameters: {', '.join(arguments)}",
        ) from None


def require_own(found: object) -> tuple[OwnMetric, ...]:
    """Checks registered metrics; raises `ConfigurationError` if they are no collection of `OwnMetric`."""
    remedy = "give a list of pytest_ldos.api.OwnMetric(…)"
    if not isinstance(found, Iterable) or isinstance(found, str | bytes):
        raise ConfigurationError(f"{HOOK}() gave {_shown(found)}, no list of metrics", remedy=remedy)
    metrics = tuple(found)
    for metric in metrics:
        if not isinstance(metric, OwnMetric):
            raise ConfigurationError(f"{_shown(metric)} was registered as a metric", remedy=remedy)
    return metrics


def _with_text(found: Missing | Invalid) -> Missing | Invalid:
    return type(found)(str(found.reason))  # a user may give another object


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 - a user's value; the message only reports that it has no repr
        return f"a {type(value).__name__} that cannot be shown ({type(error).__name__})"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _where(error: Exception, function: Callable[..., Any]) -> str:
    """Last traceback line in the function's file, or else where the exception was raised: ``conftest.py:12 in age``."""
    frames = traceback.extract_tb(error.__traceback__)
    code = getattr(function, "__code__", None)
    own = [frame for frame in frames if code is not None and frame.filename == code.co_filename]
    last = (own or frames)[-1]
    return f"{Path(last.filename).name}:{last.lineno} in {last.name}"


_LOADED_AS: Final = "ldos_own_metrics"


@dataclass(frozen=True)
class OwnSource:
    """A file or a module with user-defined metrics, and the folder to which it is relative."""

    given: str
    folder: str

    @property
    def file(self) -> Path | None:
        """``None`` for a module."""
        path = Path(self.folder) / self.given
        return path if self.given.endswith(".py") or path.is_file() else None


def load_metrics(given: str | None) -> tuple[OwnMetric, ...]:
    """Metrics of a file (``tests/conftest.py``) or a module (``mypackage.metrics``), if given; raises as `load_own`."""
    return () if given is None else load_own(OwnSource(given, str(Path.cwd())))


def load_own(source: OwnSource) -> tuple[OwnMetric, ...]:
    """Loads user-defined metrics: a file is executed each time, a module is imported as usual.

    Raises `ConfigurationError` if it does not exist, cannot be loaded, or registers an object that is no metric.
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
    """Loads a file like a conftest.py: modules in its folder can be imported."""
    spec = importlib.util.spec_from_file_location(_LOADED_AS, file)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{file} is no Python file", remedy="give one that ends in .py, or a module's name")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent.resolve()))
    sys.modules[_LOADED_AS] = module  # dataclasses look up a class's module here
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(_LOADED_AS, None)
        raise
    finally:
        sys.path.remove(str(file.parent.resolve()))
    return module


Catalogue = Mapping[str, MeasuredMetric]  # metrics by name, in display order
_BUILT_IN: Final = (T1, T1_MEAN, T2, T2X, T3, T3_MEAN, T3_P90, T3_P99, T4, T5, T5_MEAN, T5_P99)

METRICS: Final[Catalogue] = {metric.name: metric for metric in _BUILT_IN}
"""Built-in metrics. Each record describes its own metrics (`TrialSet.metrics`)."""

OF_CALLS: Final[Catalogue] = {metric.name: metric for metric in (CALL, CALL_P99, *OF_PLANS)}
"""Built-in metrics of the stimuli ``service`` and ``plan``."""

_OF_STIMULI: Final[Catalogue] = {**{metric.name: metric for metric in (REACTION, EXECUTION, WHOLE)}, **OF_CALLS}
"""Metrics of `StimulusSpec.latencies` where no arm moves."""

_LOOP: Final[tuple[MeasuredMetric, ...]] = (T3, T3_MEAN, T3_P90, T3_P99)
_SIMULATOR: Final = (T5, T5_MEAN, T5_P99)


def built_in_of(stack: StackSpec) -> Catalogue:
    """Built-in metrics of a stack, by its stimulus.

    Metrics of the control loop need named controllers, those of the simulator need Gazebo. If the begin of execution is
    unknown, the loop is measured over the whole trial.
    """
    if stack.moves_arm:
        return METRICS
    loop = _LOOP if stack.ros2.controllers else ()
    known = {**_OF_STIMULI, **({"T1": PLANNING} if stack.stimulus is StimulusKind.PLAN else {})}
    latencies = tuple(known[name] for name in stack.driver.latencies)
    if EXECUTION not in latencies:
        loop = tuple(replace(metric, window=TrialContext.trial_window) for metric in loop)
    simulator = _SIMULATOR if stack.ros2.sim is Simulation.GZ else ()
    return {metric.name: metric for metric in (*latencies, *loop, *simulator)}


def catalogue_of(
    own: Iterable[OwnMetric], declared: Iterable[MetricSpec] = (), *, built_in: Catalogue = METRICS
) -> Catalogue:
    """Built-in, declared and own metrics; raises `ConfigurationError` for a taken name, or an object that is none."""
    ours: Catalogue = {**built_in, **{spec.name: declare(spec) for spec in declared}}
    taken: Catalogue = {**METRICS, **OF_CALLS, **ours}
    registered: dict[str, OwnMetric] = {}
    for metric in require_own(own):
        if metric.name in taken:
            raise ConfigurationError(
                f"metric '{metric.name}' ({metric.origin}) has the name of another metric: {taken[metric.name].title}",
                remedy="give it another name",
            )
        other = registered.setdefault(metric.name, metric)
        if other is not metric:
            raise ConfigurationError(
                f"two metrics are called '{metric.name}' ({other.origin}, {metric.origin})",
                remedy="give one of them another name",
            )
    shares = (OWN_SHARES * 6 / (math.pi * number) ** 2 for number in count(1))
    numbered = zip(registered.items(), shares, strict=False)
    return {**ours, **{name: metric.to_measured(error_share=share) for (name, metric), share in numbered}}
