"""The page of platforms on which the tests ran."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from docs.generate.text import code, table

_FILE: Final = Path(__file__).parents[1] / "platforms.json"


def platforms_page() -> Iterator[str]:
    """Every platform with the numbers of its last run."""
    yield from (
        "# Platforms",
        "",
        "Where the tests of stacks and nodes ran last, written by these tests (`make platforms`). Skipped tests lacked",
        "something, such as Gazebo. [What was not run](../release.md#platforms) is another page.",
        "",
    )
    rows = json.loads(_FILE.read_text("utf-8"))
    yield from table(
        ("distribution", "stack", "middleware", "passed", "failed", "skipped", "on", "commit"),
        [
            (
                row["distribution"],
                row["stack"],
                row["middleware"],
                *(str(row[outcome]) for outcome in ("passed", "failed", "skipped")),
                row["date"],
                code(row["commit"]),
            )
            for row in rows
        ],
    )
