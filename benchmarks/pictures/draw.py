"""Pictures of README and docs, drawn from the results that `benchmarks.pictures.measure` left.

    python -m benchmarks.pictures.draw FOLDER docs/pictures

Pages are looked at by a browser without a window, terminals drawn by rich. A picture whose results are not there is left
out, and named.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PIL import Image, ImageChops  # matplotlib brings it
from rich.console import Console
from rich.text import Text

from tests.oracles import chromium

_WIDTH: Final = 110
"""Columns of the terminals."""

_PLACE: Final = re.compile(r"/\S*/(?=(?:report\.\w+|\.ldos)\b)")
"""Path of the scratch folder, before what a project has."""


@dataclass(frozen=True)
class Shot:
    """A page as a picture, without the empty space below.

    Attributes:
        page: file below the results' folder, as a pattern.
        width: of the window, in pixels.
        hidden: CSS selector of what is left out.
        tallest: height below which the page is cut off, in pixels.
    """

    name: str
    page: str
    width: int = 1000
    hidden: str = ""
    dark: bool = False
    tallest: int = 2400


def _only(*numbers: int) -> str:
    """Selector of a report's sections but these."""
    kept = ", ".join(f"[aria-labelledby=section-{number}]" for number in numbers)
    return f"section[aria-labelledby^=section]:not({kept})"


_ANSWER: Final = _only(1, 2)
_ALONE: Final = "header, footer, h2, details, section[aria-labelledby^=scenario] > :not(section)"

SHOTS: Final = (
    Shot("report-light.png", "regression/report.html", hidden=_ANSWER),
    Shot("report-dark.png", "regression/report.html", hidden=_ANSWER, dark=True),
    Shot(
        "waterfall.png",
        "regression/report.html",
        hidden=f"{_only(5)}, {_ALONE}",
    ),
    Shot(
        "metrics.png",
        "regression/report.html",
        width=1280,
        hidden=f"{_only(4)}, {_ALONE}",
    ),
    Shot(
        "sweep.png",
        "sweep/sweep.html",
        hidden="[aria-label=loads], .charts figure:nth-of-type(-n+2)",
        tallest=1130,
    ),
    Shot("breaking.png", "breaking/breaking.html"),
    Shot("history.png", "history/site/baseline-*.html", tallest=1300),
    Shot("trace.png", "trace/trace.html", 1200, tallest=1310),
    Shot("flame-difference.png", "profile/difference.svg", 1200),
)

_FONT: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""A typeface that would be fetched."""

_POLICY: Final = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')

TERMINALS: Final = {
    "terminal.svg": ("regression/regressed.said", "pytest -m baseline --ldos-confirm=0 --ldos-report report.html")
}


def draw_page(shot: Shot, seen: Path, target: Path) -> None:
    """Takes a picture of a page, with few enough colours to be small."""
    assert chromium.PROGRAM is not None, chromium.REASON
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / seen.name
        style = f"<style>{shot.hidden} {{ display: none }}</style>" if shot.hidden else ""
        page.write_text(_POLICY.sub("", seen.read_text("utf-8")).replace("</head>", f"{style}</head>"), "utf-8")
        command = [
            chromium.PROGRAM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            f"--user-data-dir={folder}/profile",
            f"--window-size={shot.width},{shot.tallest}",
            f"--blink-settings=preferredColorScheme={0 if shot.dark else 1}",
            f"--screenshot={folder}/picture.png",
            page.as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        _keep(Path(folder) / "picture.png", target / shot.name)


def _keep(seen: Path, target: Path) -> None:
    """Cuts the empty space below off, and keeps 64 colours."""
    with Image.open(seen) as whole:
        picture = whole.convert("RGB")
    empty = Image.new("RGB", picture.size, picture.getpixel((2, picture.height - 2)))
    used = ImageChops.difference(picture, empty).getbbox() or (0, 0, *picture.size)
    picture = picture.crop((0, 0, picture.width, min(used[3] + 20, picture.height)))
    picture.quantize(64, dither=Image.Dither.NONE).save(target, optimize=True)


def draw_terminal(output: str, command: str) -> str:
    """Draws what a command printed, shortened at its beginning, as SVG."""
    lines = list(_shown(output))
    with Path("/dev/null").open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=_WIDTH, file=nowhere, force_terminal=True)
        console.print(Text(f"$ {command}", style="bold"))
        for each in lines:
            console.print(Text.from_ansi(each), soft_wrap=False, no_wrap=True, overflow="ellipsis")
        return _FONT.sub("", console.export_svg(title="pytest-ldos"))


def _shown(output: str) -> Iterator[str]:
    """Lines from the first trial on, without those that the summary says again."""
    lines = [_PLACE.sub("", each) for each in output.splitlines()]
    begin = next(number for number, each in enumerate(lines) if "trial 1 of" in each)
    end = next(number for number, each in enumerate(lines) if "warnings summary" in each)
    table = next(number for number, each in enumerate(lines) if "median" in each and "verdict" in each)
    yield from (lines[begin], "…", *lines[begin + 9 : end], "…", *lines[table - 1 : table + 13])


def main(results: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for shot in SHOTS:
        found = sorted(results.glob(shot.page))
        if found:
            draw_page(shot, found[0], target)
            print(f"{shot.name}: {(target / shot.name).stat().st_size / 1000:.0f} kB")
        else:
            print(f"{shot.name}: no results ({shot.page})")
    for name, (output, command) in TERMINALS.items():
        if (results / output).exists():
            (target / name).write_text(draw_terminal((results / output).read_text("utf-8"), command), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
