"""Where the programs of workflows lie."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOM: Final = Path(__file__).parents[2] / ".ci" / "results"
