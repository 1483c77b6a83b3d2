"""Apache Otava's change points, found by Otava itself in an environment of its own.

A metric is one series: the base's trials, then the head's. Red where a change point for the worse lies at the head's
first trial, give or take `SLACK`: what came up elsewhere would not be blamed on the head.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.scorecard.sample import Flags, Numbers

PROGRAM: Final = Path(__file__).parents[1] / "peers_program.py"
SLACK: Final = 3
_LIMIT_S: Final = 240


@dataclass(frozen=True)
class Otava:
    """See the module.

    Attributes:
        python: of the environment that has Otava.
    """

    python: Path
    name: str = "otava"
    title: str = "Apache Otava, p < 0.001"
    source: str = "otava.analysis.compute_change_points with its defaults, called in an environment of its own"

    def fires(self, base: Numbers, head: Numbers, folder: Path) -> Flags:
        """Args: base, head of shape (series, trials), NaN where a trial has no value; folder for the files in between."""
        asked, answered = folder / "series.npz", folder / "change_points.npz"
        np.savez(asked, series=np.concatenate([base, head], axis=1), first=base.shape[1], slack=SLACK)
        command = [str(self.python), str(PROGRAM), "otava", str(asked), str(answered)]
        subprocess.run(command, check=True, timeout=_LIMIT_S, capture_output=True)
        with np.load(answered) as found:
            flags: Flags = found["red"]
        return flags
