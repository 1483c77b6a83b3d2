"""Readiness of a stack for goals, determined from answers of its parts and never from elapsed time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from xml.etree import ElementTree as ET

_ACTIVE: Final = "active"


def group_names(semantics: str) -> list[str]:
    """Names of the planning groups in a semantic robot description (SRDF); none if it is not XML."""
    try:
        return [group.get("name", "") for group in ET.fromstring(semantics).findall("group")]  # noqa: S314 - our own stack's
    except ET.ParseError:
        return []


@dataclass
class Readiness:
    """Known state of a stack's readiness.

    Attributes:
        controllers: names that must be active.
        action, joint_states, group: empty if none is needed.
        others: further conditions, as in `Ros2Spec.ready`.
        needs_clock: True if a simulator's clock must be running.
    """

    controllers: Sequence[str]
    controller_manager: str
    action: str
    joint_states: str
    group: str
    needs_clock: bool
    others: Sequence[str] = ()
    _seen: set[str] = field(default_factory=set)
    _states: Mapping[str, str] | None = None
    _actions: Sequence[str] = ()
    _groups: Sequence[str] | None = None
    _has_answered: bool = False
    _has_joint_state: bool = False
    _clock_ns: list[int] = field(default_factory=list)

    def saw_controllers(self, states: Mapping[str, str]) -> None:
        """Notes the controller manager's answer: states by controller name."""
        self._states = dict(states)

    def saw_actions(self, names: Sequence[str]) -> None:
        """Notes the actions that have a server in the ROS graph."""
        self._actions = sorted(names)

    def saw_groups(self, names: Sequence[str]) -> None:
        """Notes the robot's planning groups, as the planner reports them; none if it does not."""
        self._groups = sorted(names)

    def saw_answer(self) -> None:
        """Notes that the action server has answered a request."""
        self._has_answered = True

    def saw_joint_state(self) -> None:
        self._has_joint_state = True

    def saw(self, need: str) -> None:
        """Notes that a further condition is met."""
        self._seen.add(need)

    @property
    def unmet(self) -> list[str]:
        """Further conditions that are not yet met."""
        return [need for need in self.others if need not in self._seen]

    def saw_clock(self, time_ns: int) -> None:
        """Notes a simulator's clock message."""
        if len(self._clock_ns) < 2 and time_ns not in self._clock_ns:
            self._clock_ns.append(time_ns)

    @property
    def needs_controllers(self) -> bool:
        """True if the controller manager must be asked again."""
        return bool(self._missing_controllers())

    @property
    def needs_groups(self) -> bool:
        """True if the planner has not yet reported its groups, and one must be among them."""
        return bool(self.group) and self._groups is None

    @property
    def only_needs_groups(self) -> bool:
        """True if only the planner's answer about its groups is missing."""
        return self.needs_groups and self._has_answered and len(self.missing()) == 1

    def wrong(self) -> str:
        """Returns why goals will never be possible; empty if they may be."""
        if not self._groups or self.group in self._groups:
            return ""
        return f"the robot has no planning group {self.group!r} (there is {', '.join(self._groups)})"

    def missing(self) -> list[str]:
        """Returns the missing parts in words; empty when goals can be sent."""
        return [
            *self._missing_clock(),
            *self._missing_controllers(),
            *([] if self._has_joint_state or not self.joint_states else [f"no message on {self.joint_states}"]),
            *([] if not self.action else self._missing_action()),
            *(_missing_word(need) for need in self.unmet),
        ]

    def _missing_clock(self) -> list[str]:
        if not self.needs_clock or len(self._clock_ns) > 1:
            return []
        return ["the simulator's clock stands still" if self._clock_ns else "no message on /clock"]

    def _missing_controllers(self) -> list[str]:
        if not self.controllers:
            return []
        if self._states is None:
            return [f"no answer from {self.controller_manager}"]
        states = {name: self._states.get(name) or self._not_loaded() for name in self.controllers}
        return [f"controller {name} is {state}" for name, state in states.items() if state != _ACTIVE]

    def _not_loaded(self) -> str:
        return f"not loaded (there is {', '.join(sorted(self._states))})" if self._states else "not loaded"

    def _missing_action(self) -> list[str]:
        if self._has_answered:
            return [f"no answer about planning groups from the node of {self.action}"] if self.needs_groups else []
        if self.action in self._actions:
            return [f"no answer from the action server of {self.action}"]
        others = f" (there is {', '.join(self._actions)})" if self._actions else ""
        return [f"no action server {self.action}{others}"]


def _missing_word(need: str) -> str:
    kind, _, name = need.partition(":")
    words = {"topic": "no message on", "service": "no service", "action": "no action server", "active": "not active:"}
    return f"{words[kind]} {name}"
