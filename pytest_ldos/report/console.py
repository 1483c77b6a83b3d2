"""Rich content as text."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType


def print_to_text(content: RenderableType, *, width: int, color: bool) -> str:
    """What a console of some width shows, as text; lines end with their last visible character."""
    sink = io.StringIO()
    console = Console(
        file=sink,
        width=width,
        force_terminal=color,
        no_color=not color,
        color_system="standard" if color else None,
        highlight=False,
        legacy_windows=False,
    )
    console.print(content, crop=False)
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines()) + "\n"
