"""Causal paths to measure, and declared causal links."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pytest_ldos.base.errors import require
from pytest_ldos.base.tracepoints import Phase

_NS_PER_MS: Final = 1_000_000


class LinkRule(StrEnum):
    """Rule by which a node's publications depend on messages that it received earlier."""

    PERIODIC_ASYNC = "periodic_async"
    PARTIAL_SYNC = "partial_sync"


@dataclass(frozen=True, kw_only=True)
class LinkSpec:
    """An indirect causal link.

    Attributes:
        rule: `periodic_async`: publishes from the last message of each input;
            `partial_sync`: publishes when each input got a new message.
        node: full name of the node (``/fusion``).
        inputs: topics it subscribes to.
        outputs: topics it publishes on.
    """

    rule: LinkRule
    node: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def __post_init__(self) -> None:
        require(bool(self.inputs) and bool(self.outputs), f"a link of {self.node} needs inputs and outputs")


@dataclass(frozen=True, kw_only=True)
class PathSpec:
    """A causal path, end to end.

    Attributes:
        name: name in reports.
        via: at least two topics (``/joint_states``, ``/tf``; links between them are found) or
            phases of a goal (``goal_sent``, ``planning``, ``executing``, ``result``).
        deadline_ms: upper limit of its latency; ``None`` for no deadline.
        hard: True if a single missed deadline is a failure.
        links: indirect causal links on the path.
    """

    name: str
    via: tuple[str, ...]
    deadline_ms: float | None = None
    hard: bool = False
    links: tuple[LinkSpec, ...] = ()

    def __post_init__(self) -> None:
        require(len(self.via) >= 2, f"path {self.name!r} needs a beginning and an end", remedy="via = [FROM, …, TO]")
        topics = sum(each.startswith("/") for each in self.via)
        phases = sum(each in set(Phase) for each in self.via)
        require(
            len(self.via) in {topics, phases},
            f"path {self.name!r} leads through {', '.join(self.via)}",
            remedy=f"name topics only (each begins with /) or phases only ({', '.join(Phase)})",
        )
        in_order = [phase for phase in Phase if phase in self.via]
        require(
            not phases or list(self.via) == in_order,
            f"path {self.name!r} leads through {', '.join(self.via)}",
            remedy=f"name each phase of path {self.name!r} once, in the order {', '.join(Phase)}",
        )
        require(
            self.deadline_ms is None or 0 < self.deadline_ms < math.inf,
            f"deadline_ms of path {self.name!r} must be above 0 and finite",
        )

    @property
    def of_phases(self) -> bool:
        """True for a path of goal phases instead of topics."""
        return not self.via[0].startswith("/")

    @property
    def deadline_ns(self) -> int | None:
        return None if self.deadline_ms is None else round(self.deadline_ms * _NS_PER_MS)


STATE_FEEDBACK: Final = "state feedback"

BUILT_IN_PATHS: Final = (
    PathSpec(name="planning", via=(Phase.PLANNING, Phase.EXECUTING), deadline_ms=5000),
    PathSpec(name="execution", via=(Phase.EXECUTING, Phase.RESULT)),
    PathSpec(name="goal", via=(Phase.GOAL_SENT, Phase.PLANNING, Phase.EXECUTING, Phase.RESULT)),
    PathSpec(name=STATE_FEEDBACK, via=("/joint_states", "/tf"), deadline_ms=10),
)
"""Predefined paths of an arm; a declared path of the same name replaces one."""
