"""A publisher that a guard throttles, from the guard's point of view."""

from __future__ import annotations

from typing import Final

from pytest_ldos.base.units import NS_PER_MS
from pytest_ldos.robot.dds.node import Node
from pytest_ldos.robot.dds.parameters import ParameterClient

ANSWER_NS: Final = 500 * NS_PER_MS
"""Time after which a publisher that has not answered is asked again."""


class ThrottledPublisher:
    """Sends one publisher the share of its rate that it may use, until it has confirmed it.

    Attributes:
        name: name of its node, with a leading slash.
    """

    def __init__(self, guard: Node, name: str, parameter: str) -> None:
        self.name = name
        self._parameter = parameter
        self._client = ParameterClient(guard, name.removeprefix("/"))
        self._obeyed: float | None = None
        self._asked: tuple[float, int] | None = None
        self._refusal = ""
        self._is_there = False
        self._is_mute = False

    @property
    def trouble(self) -> str:
        """The reason for which it is not known to obey; empty if it is."""
        if not self._is_there:
            return "no such node"
        if self._refusal:
            return self._refusal
        return "does not answer" if self._is_mute or self._obeyed is None else ""

    def is_settled(self, share: float) -> bool:
        """Returns True if no answer is pending: it has confirmed or refused this share, or is not present."""
        return not self._is_there or bool(self._refusal) or self._obeyed == share

    def ask(self, share: float, now_ns: int) -> None:
        """Sends it the share, unless it has confirmed it; to be called repeatedly."""
        self._is_there = self._client.server_is_ready()
        if not self._is_there:
            self._obeyed, self._asked, self._refusal, self._is_mute = None, None, "", False
            return
        if self.is_settled(share) or self._is_waiting(now_ns):
            return
        self._is_mute = self._asked is not None
        self._asked = (share, now_ns)
        self._client.set({self._parameter: share}, lambda refused: self._note_answer(share, refused))

    def _is_waiting(self, now_ns: int) -> bool:
        return self._asked is not None and now_ns - self._asked[1] < ANSWER_NS

    def _note_answer(self, share: float, refused: list[str]) -> None:
        self._is_mute = False
        self._refusal = refused[0] if refused else ""
        if not refused:
            self._obeyed = share
        if self._asked is not None and self._asked[0] == share:
            self._asked = None
