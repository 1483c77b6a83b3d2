"""CPU time, memory, context switches and page faults of the stack's processes during a trial.

A shared name or a pattern selects the sum of several processes. Source: the kernel's counts (`host.process_resources`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Final

import polars as pl

from pytest_ldos.base.errors import ConfigurationError, suggest
from pytest_ldos.base.series import Missing
from pytest_ldos.base.text import ns_to_ms
from pytest_ldos.host.process_resources import ProcessUse, StackUse, ThreadUse
from pytest_ldos.measure.metrics.context import TrialContext
from pytest_ldos.measure.metrics.model import KERNEL_COUNTERS, MEMORY_AT_ENDS, PEAK_MEMORY, Measurement, Metric, Window
from pytest_ldos.scenario.metrics import MetricKind, MetricSpec
from pytest_ldos.trace.execution.model import ExecutionModel

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


PART: Final = "of_"  # prefix of the name of a detail with a process's part in a sum; the suffix is the unit
_ENDINGS: Final = {MetricKind.CPU: "_ms", MetricKind.MEMORY: "_mb"}


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
    """Part of each process in a sum, by name; empty for other metrics."""
    kind = metric.asked_as.partition(":")[0]
    if kind not in set(MetricKind):
        return {}
    ending = _ENDINGS.get(MetricKind(kind), "")
    named = {name: value for name, value in found.details.items() if name.startswith(PART)}
    return {name.removeprefix(PART).removesuffix(ending): value for name, value in named.items()}
