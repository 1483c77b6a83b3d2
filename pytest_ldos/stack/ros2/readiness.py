"""When a stack may be sent a goal: asked of its parts, never guessed from time that has passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_ACTIVE = "active"


@dataclass
class Readiness:
    """What a stack has shown of itself so far.

    Attributes:
        controllers: names that must be active.
        needs_clock: whether a simulator's clock must be seen running.
    """

    controllers: Sequence[str]
    controller_manager: str
    action: str
    joint_states: str
    needs_clock: bool
    _states: Mapping[str, str] | None = None
    _actions: Sequence[str] = ()
    _has_answered: bool = False
    _has_joint_state: bool = False
    _clock_ns: list[int] = field(default_factory=list)

    def saw_controllers(self, states: Mapping[str, str]) -> None:
        """The controller manager's answer: states by controller name."""
        self._states = dict(states)

    def saw_actions(self, names: Sequence[str]) -> None:
        """Actions that have a server in the ROS graph."""
        self._actions = sorted(names)

    def saw_answer(self) -> None:
        """The action server has answered a request."""
        self._has_answered = True

    def saw_joint_state(self) -> None:
        self._has_joint_state = True

    def saw_clock(self, time_ns: int) -> None:
        """A simulator's clock message."""
        if len(self._clock_ns) < 2 and time_ns not in self._clock_ns:
            self._clock_ns.append(time_ns)

    @property
    def needs_controllers(self) -> bool:
        """Whether the controller manager is still to be asked."""
        return bool(self._missing_controllers())

    def missing(self) -> list[str]:
        """What is not there yet, in words; empty when goals can be sent."""
        return [
            *self._missing_clock(),
            *self._missing_controllers(),
            *([] if self._has_joint_state else [f"no message on {self.joint_states}"]),
            *self._missing_action(),
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
        states = {name: self._states.get(name, "not loaded") for name in self.controllers}
        return [f"controller {name} is {state}" for name, state in states.items() if state != _ACTIVE]

    def _missing_action(self) -> list[str]:
        if self._has_answered:
            return []
        if self.action in self._actions:
            return [f"no answer from the action server of {self.action}"]
        others = f" (there is {', '.join(self._actions)})" if self._actions else ""
        return [f"no action server {self.action}{others}"]
