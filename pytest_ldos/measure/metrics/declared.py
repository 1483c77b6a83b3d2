"""Metrics of paths, topics, processes, loops, numbers and own tracepoints, from a project's settings.

Sources: for loops, the statistics that the controller manager publishes (``~/statistics``, ros2_control 4): for each
controller, and for reading and writing each hardware component, execution time (µs) and rate (Hz). For numbers,
``numbers`` of the line protocol (`robot.stack.lines`). For topics, the publications of all publishers together. For
CPU time, memory, context switches and page faults of processes, the kernel's counts (`host.process_resources`); a
shared name or a pattern selects the sum of several processes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final

import numpy as np
import polars as pl

from pytest_ldos.base.errors import ConfigurationError, suggest
from pytest_ldos.base.ros2 import PathSpec
from pytest_ldos.base.series import Better, Missing, Moments
from pytest_ldos.base.text import NS_PER_S, UNITS, ns_to_ms
from pytest_ldos.host.process_resources import ProcessUse, StackUse, ThreadUse
from pytest_ldos.measure.metrics.evidence import measure_place
from pytest_ldos.measure.metrics.model import (
    CONTROLLER_MANAGER,
    CPU_WORK,
    DECLARED_SHARE,
    KERNEL_COUNTERS,
    MANAGERS_RATES,
    MEMORY_AT_ENDS,
    PART,
    PASSAGES,
    PEAK_MEMORY,
    PLANNED_DURATION,
    PUBLICATIONS,
    STIMULUS,
    USUAL_FLOOR,
    MeasuredMetric,
    Measurement,
    Metric,
    TrialContext,
    Window,
)
from pytest_ldos.measure.metrics.own_events import QUANTILES, measure_events, measure_topic
from pytest_ldos.scenario.metrics import EVERY_PROCESS, MetricKind, MetricSpec, Statistic
from pytest_ldos.trace.execution.model import ExecutionModel, TimesNs

_MS_PER_US: Final = 1e-3
_STATISTICS: Final = ".stats/"  # separator between a controller's or component's name and the statistic
_DURATION: Final = "execution_time"
_RATE: Final = "periodicity"
_OF_COMPONENTS: Final = ("read_cycle", "write_cycle")


def loop_of(spec: MetricSpec) -> Callable[[TrialContext, Window], Measurement]:
    measure = _duration if spec.kind is MetricKind.UPDATE else _jitter

    def take(context: TrialContext, _: Window) -> Measurement:
        loops = context.outside.loops
        if loops is None:
            return Measurement(Missing("the controller manager is asked while a trial is made; no trace has it"))
        found = measure(spec.subject, loops)
        return found or Measurement(Missing(f"'{spec.subject}' was not updated in the trial, or activated in it"))

    return take


def since(now: Mapping[str, Moments], earlier: Mapping[str, Moments]) -> dict[str, Moments]:
    """Statistics of a time span, from those at its ends."""
    spans = {name: each.since(earlier[name]) for name, each in now.items() if name in earlier}
    return {name: span for name, span in spans.items() if span is not None}


def refuse_unknown_loops(specs: Sequence[MetricSpec], statistics: Collection[str]) -> None:
    """Raises `ConfigurationError` for loops of which the controller manager publishes no `statistics`."""
    known = sorted({name.partition(_STATISTICS)[0] for name in statistics if _STATISTICS in name})
    for spec in specs:
        if not known:
            raise ConfigurationError(
                f"metric '{spec}': no controller manager publishes statistics of its loops",
                remedy="it needs ros2_control 4, and controller_manager in [tool.ldos.stack] if that has another name",
            )
        if spec.subject not in known:
            raise ConfigurationError(
                f"metric '{spec}': the controller manager has no '{spec.subject}'; it has {', '.join(known)}",
                remedy=f"{suggest(spec.subject, known)} ([tool.ldos] metrics)",
            )


def _duration(name: str, loops: Mapping[str, Moments]) -> Measurement | None:
    """Mean duration of an update; for a hardware component, of a read and a write."""
    own = loops.get(f"{name}{_STATISTICS}{_DURATION}")
    if own is not None:
        details = {"updates": own.count, "sd_ms": own.sd * _MS_PER_US}
        return Measurement(own.mean * _MS_PER_US, details, CONTROLLER_MANAGER)
    parts = {part: loops.get(f"{name}{_STATISTICS}{part}/{_DURATION}") for part in _OF_COMPONENTS}
    found = {part: each for part, each in parts.items() if each is not None}
    if not found:
        return None
    each_ms = {f"{part}_ms": each.mean * _MS_PER_US for part, each in found.items()}
    return Measurement(sum(each_ms.values()), each_ms, CONTROLLER_MANAGER)


def _jitter(name: str, loops: Mapping[str, Moments]) -> Measurement | None:
    """Standard deviation of the periods, derived to first order from that of the rates."""
    rates = loops.get(f"{name}{_STATISTICS}{_RATE}") or loops.get(f"{name}{_STATISTICS}{_OF_COMPONENTS[0]}/{_RATE}")
    if rates is None or rates.mean <= 0:
        return None
    return Measurement(rates.sd / rates.mean**2 * 1e3, {"updates": rates.count, "rate_hz": rates.mean}, MANAGERS_RATES)


def latency_of(path: PathSpec, statistic: Statistic) -> Callable[[TrialContext, Window], Measurement]:
    """Measures a statistic of the passages along a path that ended in the trial."""

    def measure(context: TrialContext, window: Window) -> Measurement:
        passages = context.passages(path, window)
        if path.of_phases:
            passages = passages.filter(pl.col("goal_id") == context.trial.goal_id)
        latencies_ns = passages["latency_ns"].to_numpy()
        if not len(latencies_ns):
            return Measurement(context.not_seen(f"no passage along path '{path.name}' ended in the trial"))
        details = {"passages": float(len(latencies_ns))}
        if path.deadline_ns is not None:
            details["misses"] = float((latencies_ns > path.deadline_ns).sum())
        if statistic is Statistic.MISSES:
            return Measurement(details["misses"], details, PASSAGES)
        return Measurement(ns_to_ms(np.quantile(latencies_ns, QUANTILES[statistic])), details, PASSAGES)

    return measure


def number_of(name: str) -> Callable[[TrialContext, Window], Measurement]:
    def measure(context: TrialContext, _: Window) -> Measurement:
        numbers = context.outside.numbers
        if name in numbers:
            return Measurement(numbers[name], {}, STIMULUS)
        known = suggest(name, numbers) if numbers else "it reported none of this trial"
        return Measurement(Missing(f"the stimulus reported no number '{name}': {known}"))

    return measure


def publications_of(
    topic: str, value: Callable[[TimesNs, TimesNs, Window], float]
) -> Callable[[TrialContext, Window], Measurement]:
    """Measures a topic; `value` takes the times of all publications, of those within the window, and the window."""

    def measure(context: TrialContext, window: Window) -> Measurement:
        times = context.model.publication_times_ns(topic)
        within = times[(times >= window[0]) & (times <= window[1])]
        if len(within):
            return Measurement(value(times, within, window), {"publications": float(len(within))}, PUBLICATIONS)
        topics = context.model.topics()
        if topic in topics:
            return Measurement(context.not_seen(f"nothing was published on {topic} in the trial"))
        if topics:
            return Measurement(context.not_seen(f"the trace has no topic {topic}: {suggest(topic, topics)}"))
        older = ", as its publishers are older than the recording (ldos record --keep-names)"
        return Measurement(context.not_seen(f"the trace names no topics{older if context.model.unknown else ''}"))

    return measure


def _rate(times: TimesNs, _: TimesNs, window: Window) -> float:
    """Publications per second, interpolated: the rate of a slow topic does not depend on the start of the trial."""
    return float(np.ptp(np.interp(window, times, np.arange(len(times)))) / ((window[1] - window[0]) / NS_PER_S))


def _largest_gap(_: TimesNs, within: TimesNs, window: Window) -> float:
    """Longest time without a publication, ms, including the ends of the window."""
    return ns_to_ms(int(np.diff([window[0], *within, window[1]]).max()))


@dataclass(frozen=True, kw_only=True)
class DeclaredMetric(MeasuredMetric):
    spec: MetricSpec


@dataclass(frozen=True)
class _Sort:
    """Properties shared by metrics of a kind; `tolerable` is the largest tolerable MDE of one without a statistic."""

    title: str  # with a placeholder for the subject
    unit: str
    definition: str
    floor: float = USUAL_FLOOR
    tolerable: float = 0.5
    better: Better = Better.LOWER
    grows: bool = False  # with the duration of a trial and the slowness of the CPU


_OF_RATES: Final = 0.01  # default floor of rates, which differ by some thousandths between equal trials
_OF_MEMORY: Final = 0.01  # default floor of memory, which differs by a thousandth or two between trials and starts

_SORTS: Final = {
    MetricKind.RATE: _Sort(
        "rate of {}", "Hz", "publications a second in the trial", _OF_RATES, 0.1, better=Better.HIGHER
    ),
    MetricKind.GAP: _Sort("largest gap of {}", "ms", "longest time in the trial without a publication", tolerable=2.0),
    MetricKind.CPU: _Sort("CPU time of {}", "ms", "user and system time during the trial", tolerable=0.3, grows=True),
    MetricKind.MEMORY: _Sort(
        "peak memory of {}",
        "MB",
        "largest resident memory during the trial, without pages of files and shared memory",
        _OF_MEMORY,
        0.1,
    ),
    MetricKind.SWITCHES: _Sort(
        "context switches of {}", "", "voluntary and involuntary switches of all threads", grows=True
    ),
    MetricKind.UPDATE: _Sort("update of {}", "ms", "mean duration of an update in the trial", tolerable=0.3),
    MetricKind.JITTER: _Sort("jitter of {}", "ms", "standard deviation of the periods of its updates", tolerable=1.0),
    MetricKind.NUMBER: _Sort("{}", "", "as the stimulus reports it of each trial"),
    MetricKind.FAULTS: _Sort("page faults of {}", "", "minor and major page faults", tolerable=2.0),
    MetricKind.PATH: _Sort("{}", "ms", "the latencies of passages that ended in the trial"),
    MetricKind.SPAN: _Sort("{}", "ms", "the times from the first event to the second that ended in the trial"),
    MetricKind.INTERVAL: _Sort("interval of {}", "ms", "the times from one event to the next in the trial"),
    MetricKind.VALUE: _Sort("{}", "", "the values of the field in the trial's events"),
    MetricKind.COUNT: _Sort("number of {}", "", "events in the trial", tolerable=2.0),
    MetricKind.TOPIC: _Sort("{}", "", "the numbers in the messages that arrived in the trial"),
    MetricKind.ALLOCATIONS: _Sort("allocations in {}", "", "mean number of allocations in a run", tolerable=2.0),
    MetricKind.FREES: _Sort("frees in {}", "", "mean number of frees in a run", tolerable=2.0),
    MetricKind.LOCKS: _Sort("locks in {}", "", "mean number of mutexes locked in a run", tolerable=2.0),
    MetricKind.BLOCKED: _Sort("waits in {}", "", "mean number of waits in a run", tolerable=2.0),
}

_OF_STATISTICS: Final = {  # meaning, and largest tolerable MDE
    Statistic.P50: ("median", 0.3),
    Statistic.P90: ("90th percentile", 0.6),
    Statistic.P99: ("99th percentile", 1.0),
    Statistic.MAX: ("largest", 2.0),
    Statistic.MISSES: ("misses", 2.0),
}


def _unit_at_end(name: str) -> str:
    """The unit in ``processing_time_ms``; empty without one."""
    stem, _, ending = name.rpartition("_")
    ending = {"us": "µs", "sec": "s"}.get(ending, ending)
    return ending if stem and ending in UNITS else ""


def declare(spec: MetricSpec) -> DeclaredMetric:
    sort = _SORTS[spec.kind]
    subject, unit, definition, tolerable = spec.subject, sort.unit, sort.definition, sort.tolerable
    if spec.process == EVERY_PROCESS:
        subject = f"all processes{f', threads {spec.thread}' if spec.thread else ''}"
    if spec.events:
        subject = spec.place or " to ".join(event.name for event in spec.events)
    if spec.kind in (MetricKind.NUMBER, MetricKind.VALUE):  # its name can end in a unit: distance_m
        name = spec.subject.rpartition(":")[2]
        stem, _, ending = name.rpartition("_")
        unit = ending if ending in UNITS and stem else ""
        subject = f"{name} of {subject}" if spec.events else name
    if spec.kind is MetricKind.TOPIC:
        topic, _, name = spec.subject.rpartition(":")
        unit, subject = _unit_at_end(name) or _unit_at_end(topic), f"{name} of {topic}"
    if spec.statistic is not None:
        meaning, tolerable = _OF_STATISTICS[spec.statistic]
        subject, definition = f"{subject}, {spec.statistic}", f"{meaning} of {definition}"
    if spec.statistic is Statistic.MISSES:
        unit, definition = "", "passages that took longer than the path's deadline"
    covariates: dict[str, Any] = {"adjust_for": (CPU_WORK,)} if sort.grows and spec.kind is MetricKind.CPU else {}
    if sort.grows:
        covariates["adjust_where_alike"] = (PLANNED_DURATION,)
    return DeclaredMetric(
        name=spec.name,
        title=sort.title.format(subject),
        unit=unit,
        better=Better.HIGHER if Better.HIGHER in (sort.better, spec.better) else Better.LOWER,
        error_share=DECLARED_SHARE,
        largest_tolerable_mde=tolerable,
        usual_floor=sort.floor,
        asked_as=str(spec),
        window=TrialContext.trial_window,
        measure=_measure(spec),
        definition=definition,
        path="" if spec.path is None else spec.path.name,
        spec=spec,
        **covariates,
    )


def in_traces(specs: Iterable[MetricSpec]) -> tuple[MetricSpec, ...]:
    return tuple(spec for spec in specs if spec.kind.is_in_traces or spec.place)


def declared_in(metrics: Iterable[MeasuredMetric]) -> tuple[MetricSpec, ...]:
    return tuple(metric.spec for metric in metrics if isinstance(metric, DeclaredMetric))


def _measure(spec: MetricSpec) -> Callable[[TrialContext, Window], Measurement]:
    if spec.path is not None and spec.statistic is not None:
        return latency_of(spec.path, spec.statistic)
    if spec.kind.is_of_topic:
        return publications_of(spec.subject, _rate if spec.kind is MetricKind.RATE else _largest_gap)
    if spec.kind is MetricKind.NUMBER:
        return number_of(spec.subject)
    if spec.kind.is_of_loop:
        return loop_of(spec)
    if spec.events or spec.kind is MetricKind.TOPIC:
        return partial(measure_place if spec.place else measure_events if spec.events else measure_topic, spec)
    return use_of(spec)


_BYTES_PER_MB: Final = 1e6


def use_of(spec: MetricSpec) -> Callable[[TrialContext, Window], Measurement]:
    def measure(context: TrialContext, window: Window) -> Measurement:
        if context.outside.resources is None:
            return Measurement(Missing("use of resources is measured while a trial is made; no trace has it"))
        found = _processes(spec, context.outside.resources, context.model)
        if isinstance(found, Missing):
            return Measurement(found)
        if spec.thread:
            return _of_threads(spec, found)
        return _memory(found) if spec.kind is MetricKind.MEMORY else _counted(spec.kind, found)

    return measure


def refuse_absent(specs: Sequence[MetricSpec], names: Sequence[str]) -> None:
    """Raises `ConfigurationError` for processes that the stack lacks; `names` are those of its processes."""
    for spec in specs:
        if spec.process and not spec.node and not any(fnmatchcase(name, spec.process) for name in names):
            raise ConfigurationError(
                f"metric '{spec}': no process of the stack is called '{spec.process}'; {_there_are(names)}",
                remedy=f"{suggest(spec.process, names)} ([tool.ldos] metrics)" if names else "",
            )


def refuse_absent_nodes(specs: Sequence[MetricSpec], nodes: Sequence[str]) -> None:
    """Raises `ConfigurationError` for nodes that the stack lacks; `nodes` are the full names in the trace so far."""
    for spec in specs:
        if spec.node and spec.node not in nodes:
            there = _there_are(nodes) if nodes else "its trace has none so far"
            raise ConfigurationError(
                f"metric '{spec}': no node of the stack is called '{spec.node}'; {there}",
                remedy=f"{suggest(spec.node, nodes)} ([tool.ldos] metrics)" if nodes else "",
            )


def _processes(spec: MetricSpec, used: StackUse, model: ExecutionModel) -> list[ProcessUse] | Missing:
    if spec.node:
        return _of_node(spec.node, used, model)
    lost = {name for name in used.lost.values() if fnmatchcase(name, spec.process)}
    if lost:
        return _lost(", ".join(sorted(lost)))
    found = [each for each in used.processes if fnmatchcase(each.name, spec.process)]
    return found or Missing(f"no process of the stack is called '{spec.process}'; {_there_are(used.names)}")


def _of_node(node: str, used: StackUse, model: ExecutionModel) -> list[ProcessUse] | Missing:
    """The process of a node, from the trace; a restarted node has two."""
    nodes = model.nodes.join(model.processes.select("pid", process="id"), on="process")
    pids = set(nodes.filter(pl.col("name") == node)["pid"])
    if not pids:
        return Missing(f"the trace has no node {node}: {suggest(node, nodes['name'].drop_nulls().to_list())}")
    if lost := pids & used.lost.keys():
        return _lost(", ".join(sorted({used.lost[pid] for pid in lost})))
    found = [each for each in used.processes if each.pid in pids]
    return found or Missing(f"the process of node {node} is none of the stack's, or ended before the trial")


def _lost(name: str) -> Missing:
    return Missing(
        f"{name} ended during the trial, and what it had used until then is not known: that needs the capability "
        "CAP_NET_ADMIN, outside of containers, and Linux 5.19"
    )


def _there_are(names: Sequence[str]) -> str:
    return f"it has {', '.join(sorted(set(names)))}" if names else "it has no process that this machine shows"


def _counted(kind: MetricKind, processes: Sequence[ProcessUse]) -> Measurement:
    by_name: dict[str, float] = {}
    for each in processes:
        by_name[each.name] = by_name.get(each.name, 0.0) + (_count(kind, each) or 0.0)
    return Measurement(sum(by_name.values()), {**_parts(kind, by_name), **_changes(processes)}, KERNEL_COUNTERS)


def _count(kind: MetricKind, used: ProcessUse | ThreadUse) -> float | None:
    """The number of a kind; ``None`` if the kernel does not count it."""
    match kind:
        case MetricKind.CPU:
            return None if used.cpu_ns is None else ns_to_ms(used.cpu_ns)
        case MetricKind.SWITCHES:
            return float(used.switches)
    return float(used.faults)


def _memory(processes: Sequence[ProcessUse]) -> Measurement:
    names = dict.fromkeys(each.name for each in processes)
    by_name = {name: _peak([each for each in processes if each.name == name]) / _BYTES_PER_MB for name in names}
    living = [each for each in processes if not each.has_ended]
    details = {
        "resident_mb": sum(each.resident_bytes for each in living) / _BYTES_PER_MB,
        "grown_mb": sum(each.grown_bytes for each in living if not each.has_begun) / _BYTES_PER_MB,
        **_parts(MetricKind.MEMORY, by_name),
        **_changes(processes),
    }
    source = PEAK_MEMORY if all(each.is_peak_known for each in processes) else MEMORY_AT_ENDS
    return Measurement(sum(by_name.values()), details, source)


def _peak(processes: Sequence[ProcessUse]) -> float:
    """Peak of processes of one name: their sum; of a process and its successor, the larger one."""
    living = sum(each.peak_bytes for each in processes if not each.has_ended)
    begun = sum(each.peak_bytes for each in processes if each.has_begun and not each.has_ended)
    ended = max((each.peak_bytes for each in processes if each.has_ended), default=0)
    return float(living - begun + max(begun, ended))


_ENDINGS: Final = {MetricKind.CPU: "_ms", MetricKind.MEMORY: "_mb", MetricKind.SPAN: "_ms"}


def _parts(kind: MetricKind, by_name: dict[str, float]) -> dict[str, float]:
    ending = _ENDINGS.get(kind, "")
    return {f"{PART}{name}{ending}": value for name, value in sorted(by_name.items())} if len(by_name) > 1 else {}


def _changes(processes: Sequence[ProcessUse]) -> dict[str, float]:
    """Numbers of processes that began and ended during the trial, if there were any."""
    counts = {"began": sum(each.has_begun for each in processes), "ended": sum(each.has_ended for each in processes)}
    return {name: float(count) for name, count in counts.items() if count}


def _of_threads(spec: MetricSpec, processes: Sequence[ProcessUse]) -> Measurement:
    threads = [each for process in processes for each in process.threads]
    chosen = [each for each in threads if fnmatchcase(each.name, spec.thread)]
    if not chosen:
        names = ", ".join(sorted({each.name for each in threads}))
        return Measurement(Missing(f"{spec.process} has no thread '{spec.thread}'; it has {names}"))
    counts = [count for each in chosen if (count := _count(spec.kind, each)) is not None]
    if len(counts) < len(chosen):
        return Measurement(Missing("this kernel does not count the CPU time of threads"))
    return Measurement(sum(counts), {"threads": float(len(chosen))}, KERNEL_COUNTERS)


def parts_of(metric: Metric, found: Measurement) -> dict[str, float]:
    """Part of each process in a sum, or of each state of a span's thread, by name; empty for other metrics."""
    kind = metric.asked_as.partition(":")[0]
    if kind not in set(MetricKind):
        return {}
    ending = _ENDINGS.get(MetricKind(kind), "")
    named = {name: value for name, value in found.details.items() if name.startswith(PART)}
    return {name.removeprefix(PART).removesuffix(ending): value for name, value in named.items()}
