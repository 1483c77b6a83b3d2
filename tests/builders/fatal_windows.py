"""A trace of which one window ends the process that reads it."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, fields
from pathlib import Path

from pytest_ldos.trace.ctf.read import Window, WindowedTrace


@dataclass(frozen=True)
class FatalTrace(WindowedTrace):
    """As the trace that it is made of; workers that read `fatal` are killed.

    Attributes:
        ours: the process that may read it.
        notes: folder with a file for each worker that was killed.
        most: number of workers that are killed.
    """

    fatal: Window = (0, 0)
    ours: int = 0
    notes: Path = Path()
    most: int = 0

    @classmethod
    def of(cls, trace: WindowedTrace, fatal: Window, notes: Path, *, most: int) -> FatalTrace:
        own = {field.name: getattr(trace, field.name) for field in fields(WindowedTrace)}
        return cls(**own, fatal=fatal, ours=os.getpid(), notes=notes, most=most)

    def read(self, *, events, fields=None, window=None):
        if window == self.fatal and os.getpid() != self.ours and len(list(self.notes.iterdir())) < self.most:
            (self.notes / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read(events=events, fields=fields, window=window)
