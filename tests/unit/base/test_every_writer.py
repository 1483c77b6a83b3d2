"""All files are written inside `writing`, so that a full disk is always reported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest_ldos

PACKAGE = Path(pytest_ldos.__file__).parent
WRITERS = {
    "write_text",
    "write_bytes",
    "mkdir",
    "mkdtemp",
    "mkstemp",
    "TemporaryDirectory",
    "write_parquet",
    "copyfile",
}
OPENERS = {"open", "fdopen"}

ELSEWHERE = {  # a file, or one function or class of it
    "base/files.py": "the mechanism itself",
    "host/cgroup.py": "files of the kernel, whose faults have an error of their own",
    "host/temporary.py::RemoveCgroup": "files of the kernel, in a process that reports what failed",
    "host/cpu.py::steal": "a file of the kernel",
    "host/process_resources.py": "a file of the kernel; a fault changes the source of the number",
    "doctor/changes.py": "its record and the files of the kernel have an error of their own, MendFailed",
    "robot/topology/conversation.py": "a separate process, whose last output is reported",
    "instruments/latency/peer.py": "a separate process, whose last output is reported",
    "robot/stack/ros2/launcher.py": "a separate process, whose last output is reported",
    "measure/load/ros_node.py": "a file of the kernel, in a process of its own",
    "record/run_directory.py": "a separate process, whose last output is reported",
    "show/export/parquet.py": "its callers are inside `writing`: they know what is written",
    "base/parquet.py": "its callers are inside `writing`: they know what is written",
    "cli/measure_commit.py": "needs no package; its main names the fault",
    "cli/traces.py": "inside `writing` in the command",
    "record/perf.py": "a fault is a note in the result",
    "campaign/versions/version.py": "its caller names the fault, as a base that cannot be built",
    "instruments/latency/instrument.py": "below a folder of ours that was just made",
}


def unguarded(tree: ast.AST, *, is_guarded: bool = False) -> Iterator[ast.Call]:
    """Calls that write outside of ``with writing(…)``."""
    for node in ast.iter_child_nodes(tree):
        inside = is_guarded or (
            isinstance(node, ast.With) and any(_name(each.context_expr) == "writing" for each in node.items)
        )
        if isinstance(node, ast.Call) and _writes(node) and not inside:
            yield node
        yield from unguarded(node, is_guarded=inside)


def _name(node: ast.AST) -> str:
    """Name of the called method, or of the functions `writing` and `open`."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    called = getattr(node.func, "id", "")
    return called if called in {"writing", *OPENERS} else ""


def _writes(call: ast.Call) -> bool:
    modes = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return _name(call) in WRITERS or (
        _name(call) in OPENERS and any(set(mode) <= set("wabx+") and mode for mode in modes)
    )


def places_of(file: Path) -> Iterator[tuple[str, list[int]]]:
    """The file, or its functions and classes, with the lines of their unguarded writers."""
    name, tree = file.relative_to(PACKAGE).as_posix(), ast.parse(file.read_text("utf-8"))
    parts = {name: tree} if name in ELSEWHERE else {f"{name}::{getattr(each, 'name', '')}": each for each in tree.body}
    for place, part in parts.items():
        if calls := list(unguarded(part)):
            yield place, [call.lineno for call in calls]


def test_every_writer_names_a_full_disk():
    found = dict(place for file in sorted(PACKAGE.rglob("*.py")) for place in places_of(file))
    assert {place: lines for place, lines in found.items() if place not in ELSEWHERE} == {}
    assert set(ELSEWHERE) <= set(found), "a reason for what is not there any more"
