"""``ldos profile show | diff``: where processes spent their time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.cli.help import Command, Group
from pytest_ldos.cli.output import write_text
from pytest_ldos.cli.say import emit, say
from pytest_ldos.record.profiles.difference import Difference, compare_profiles
from pytest_ldos.record.profiles.folded import FoldedStacks, merge, read_folded, render_folded
from pytest_ldos.record.profiles.speedscope import render_speedscope
from pytest_ldos.show.report.flame.files import SVG, render_flame, render_flame_difference
from pytest_ldos.show.report.flame.table import render_profile
from pytest_ldos.show.report.flame.words import describe_changes, describe_noise

profile_app = typer.Typer(
    cls=Group,
    help="Show where processes spent their time, and what changed.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_JSON: Final = ".json"
_FOLDED: Final = ".folded"
_ENDINGS: Final = (SVG, _JSON, _FOLDED)
_WHERE: Final = "A .folded file, or a folder of them: one a start of that version."

Profile = Annotated[Path, typer.Argument(help=_WHERE)]


@profile_app.command(cls=Command)
def show(
    profile: Profile,
    output: Annotated[
        Path | None, typer.Option(help="File: .svg (flame graph), .json (for speedscope.app) or .folded.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Functions that are listed.")] = 20,
) -> None:
    """Show in which functions the time of a profile went.

    For each, the samples in itself, and those in what it called too.
    """
    found = merge(_parts(profile))
    if output is None:
        emit(render_profile(found, top))
        return
    write_text(_render(found, profile, output), output)
    say(f"profile: {output}")


@profile_app.command(cls=Command)
def diff(
    base: Profile,
    head: Profile,
    output: Annotated[Path | None, typer.Option(help="File for the differential flame graph: .svg.")] = None,
) -> None:
    """Compare two profiles: which functions take another share.

    Only what the samples show for certain is named.
    """
    if output is not None and output.suffix != SVG:
        raise ConfigurationError(f"{output} is no drawing", remedy=f"let it end with {SVG}")
    difference = compare_profiles(_parts(base), _parts(head))
    for line in (*describe_noise(difference), *describe_changes(difference)):
        say(line)
    if output is not None:
        write_text(_draw_difference(difference, base, head), output)
        say(f"profile: {output}")


def _draw_difference(difference: Difference, base: Path, head: Path) -> str:
    return render_flame_difference(difference, f"{base} → {head}")


def _parts(place: Path) -> list[FoldedStacks]:
    """A profile for each start.

    Raises:
        ConfigurationError: a folder without profiles.
        RecordUnreadable: see `read_folded`.
    """
    if not place.is_dir():
        return [read_folded(place)]
    files = sorted(place.glob(f"*{_FOLDED}"))
    if not files:
        raise ConfigurationError(f"{place} holds no profiles", remedy=f"name a folder with {_FOLDED} files")
    return [read_folded(file) for file in files]


def _render(profile: FoldedStacks, source: Path, output: Path) -> str:
    if output.suffix == SVG:
        return render_flame(profile, str(source))
    if output.suffix == _JSON:
        return render_speedscope(profile, str(source))
    if output.suffix == _FOLDED:
        return render_folded(profile)
    raise ConfigurationError(f"{output} has no format of a profile", remedy=f"let it end with {', '.join(_ENDINGS)}")
