"""Trials as machines of the lab leave them: one file a scenario and version, below the folder of its run."""

from __future__ import annotations

from typing import Final

_FOLDER: Final = r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]{0,99}"

HEAD: Final = "trials.json"
BASE: Final = "base/trials.json"
FORM: Final = rf"{_FOLDER}/{_FOLDER}/(?:base/)?trials\.json"
"""Form of a file's path in the artifact of a machine: RUN/SCENARIO/…"""

MOST: Final = 400
"""Files."""

LARGEST: Final = 128 * 1024 * 1024
"""Bytes of all of them."""
