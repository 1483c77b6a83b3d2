"""The page of tables in TOML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from docs.generate.classes import documented, fields, paragraph
from docs.generate.text import code, table
from pytest_ldos.base.files import field_types
from pytest_ldos.base.ros2 import LinkSpec, PathSpec
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.scenario.metrics import DeadlineSpec, MetricSpec
from pytest_ldos.scenario.model import FaultSpec, Ros2Spec, StackSpec
from pytest_ldos.scenario.options import OPTIONS
from pytest_ldos.scenario.scenario_table import BUILT_IN_SCENARIOS, BaseSpec, CiSpec
from pytest_ldos.scenario.settings import GATE_KEYS
from pytest_ldos.scenario.stimuli import StimuliSpec
from pytest_ldos.scenario.words import SCENARIO_DESCRIPTIONS

_OF_WHOLE: Final = frozenset({"faults", "ros2", "stimuli"})
"""Fields of the stack that are tables of their own, or stand in its table."""


def toml_page() -> Iterator[str]:
    """Every table below ``[tool.ldos]``, key by key."""
    stack = {name: text for name, text in documented(StackSpec).items() if name not in _OF_WHOLE}
    yield from (
        "# Tables of `[tool.ldos]`",
        "",
        "Scenarios, the stack, paths, the gate and the base, in `pyproject.toml` or, without `tool.ldos.`, in",
        "`ldos.toml`. What is unknown or has a wrong value is refused with the nearest name.",
        "",
        "## `[tool.ldos.scenarios.NAME]`",
        "",
        "A scenario of one's own, or what is to be different of one that is built in. `A+B` are several at once.",
        "",
    )
    yield from table(("scenario", "what it is"), _built_in_rows())
    per_scenario = ", ".join(code(option.name) for option in OPTIONS.values() if option.per_scenario)
    yield ""
    yield from table(
        ("key", "value", "meaning"),
        [
            (per_scenario, "as above", "settings of this scenario alone"),
            (code("description"), "a text", "its description in `pytest --markers`"),
            (
                code("loads"),
                "a table, see [loads](loads.md)",
                "loads that are applied; `cpu_load = true` is that load with its defaults",
            ),
            (code("deadlines"), "a table, see below", "what is expected of causal paths"),
        ],
    )
    yield ""
    yield from (
        "### `deadlines.PATH`",
        "",
        'Milliseconds, or a table: `"state feedback" = { ms = 10, share = 0.95 }`.',
        "",
    )
    yield from fields(DeadlineSpec, but={"path"})
    yield from ("## `[tool.ldos.stack]`", "", f'{paragraph(StackSpec)} `stack = "ros2"` alone names its kind.', "")
    yield from fields(StackSpec, only=stack)
    yield from ("Of a stack of ROS 2 nodes, in the same table:", "")
    yield from fields(Ros2Spec)
    yield from ("### `[tool.ldos.stack.faults]`", "", paragraph(FaultSpec), "")
    yield from fields(FaultSpec)
    for name, kind in field_types(StimuliSpec).items():
        yield from (f"## `[tool.ldos.stimulus.{name}]`", "", paragraph(kind), "")
        yield from fields(kind)
    yield from ("## `[[tool.ldos.paths]]`", "", paragraph(PathSpec), "")
    yield from fields(PathSpec, but={"links"})
    yield from ("### `[[tool.ldos.paths.links]]`", "", paragraph(LinkSpec), "")
    yield from fields(LinkSpec)
    yield from (
        "## `tool.ldos.metrics`",
        "",
        "A list of texts `KIND:SUBJECT[:STATISTIC]` in `[tool.ldos]` itself, each one more metric:",
        '`metrics = ["path:state feedback:p99", "rate:/scan", "cpu:move_group", "memory:*"]`. Kinds and statistics:',
        "[metrics](metrics.md#metrics-of-paths-topics-processes-and-own-tracepoints). SUBJECT is the",
        f"{documented(MetricSpec)['subject']}",
        "",
    )
    yield from ("## `[tool.ldos.gate]`", "", paragraph(Policy), "")
    yield from fields(Policy, only=sorted(GATE_KEYS))
    yield from ("## `[tool.ldos.base]`", "", paragraph(BaseSpec), "")
    yield from fields(BaseSpec)
    yield from ("## `[tool.ldos.ci]`", "", paragraph(CiSpec), "")
    yield from fields(CiSpec)


def _built_in_rows() -> list[tuple[str, str]]:
    return [
        (
            code(name),
            text + (f" (`{', '.join(BUILT_IN_SCENARIOS[name].loads)}`)" if BUILT_IN_SCENARIOS[name].loads else ""),
        )
        for name, text in SCENARIO_DESCRIPTIONS.items()
    ]
