"""The installed software from which a stack's processes are started."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Installation:
    """An installed version of the stack.

    Attributes:
        python: interpreter of the embedded stack's processes.
        environment: variables of a sourced ROS 2 workspace, which replace ours of the same names;
            ``None`` for ours.
        launch_file: replaces the launch file that the settings name by its path; empty for that one.
    """

    python: str = sys.executable
    environment: Mapping[str, str] | None = None
    launch_file: str = ""

    @property
    def is_ours(self) -> bool:
        return self == OURS

    @property
    def interpreter(self) -> tuple[str, ...]:
        """The command that runs Python.

        Another environment's interpreter runs isolated, so that neither ``PYTHONPATH`` nor the
        current folder can make it import our own sources.
        """
        return (self.python,) if self.python == sys.executable else (self.python, "-I")


OURS: Final = Installation()
"""The environment of this process."""
