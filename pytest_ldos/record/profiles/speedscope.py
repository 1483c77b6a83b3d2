"""Profiles for speedscope, a viewer that runs in a browser.

Reference: https://www.speedscope.app/file-format-schema.json (``sampled`` profiles).
"""

from __future__ import annotations

import json
from importlib.metadata import version
from itertools import groupby
from typing import Any, Final

from pytest_ldos.record.profiles.folded import FoldedStacks

SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"


def render_speedscope(profile: FoldedStacks, name: str) -> str:
    """JSON text with a profile of all samples, followed by one profile per process."""
    frames: dict[str, int] = {}
    stacks = sorted(profile.counts.items())
    for stack, _ in stacks:
        for frame in stack:
            frames.setdefault(frame, len(frames))
    profiles = [_sampled("all processes", stacks, frames)]
    profiles += [_sampled(each, list(own), frames) for each, own in groupby(stacks, lambda pair: pair[0][0])]
    document = {
        "$schema": SCHEMA,
        "name": name,
        "exporter": f"pytest-ldos {version('pytest-ldos')}",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": each} for each in frames]},
        "profiles": profiles,
    }
    return json.dumps(document, allow_nan=False) + "\n"


def _sampled(name: str, stacks: list[tuple[tuple[str, ...], int]], frames: dict[str, int]) -> dict[str, Any]:
    weights = [count for _, count in stacks]
    return {
        "type": "sampled",
        "name": name,
        "unit": "none",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [[frames[frame] for frame in stack] for stack, _ in stacks],
        "weights": weights,
    }
