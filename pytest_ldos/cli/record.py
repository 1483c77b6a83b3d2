"""``ldos record``: records nodes that run already, and keeps the names of those that will."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.files import writing
from pytest_ldos.cli.say import say
from pytest_ldos.host.temporary import terminated_like_interrupted
from pytest_ldos.record.attach import KEPT, NAMES_UNKNOWN, AttachedRecorder, keep_names, registered_processes


def record(
    output: Annotated[Path | None, typer.Argument(help="Folder for the trace, which must not exist.")] = None,
    *,
    attach: Annotated[
        bool, typer.Option("--attach", help="Record the nodes that run in this environment's DDS domain.")
    ] = False,
    seconds: Annotated[
        float | None, typer.Option(min=0.1, metavar="SECONDS", help="End after this time. [default: at Ctrl-C]")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep-names", help="Keep the names of nodes that start from now on, for a later --attach.")
    ] = False,
) -> None:
    """Record nodes that run already.

    They are recorded with their names if --keep-names was called before they started, for example at boot: it creates
    an LTTng session, ldos-names, and returns.

    Exit code: 0 all was recorded, 11 events were lost.
    """
    if keep is (output is not None) or keep is attach:
        message = "nothing says what to record, and where"
        raise ConfigurationError(message, remedy="ldos record --attach FOLDER, or ldos record --keep-names")
    if output is None:
        say(f"names are kept in the LTTng session {KEPT}" if keep_names() else "names are kept already")
        return
    if output.exists():
        raise ConfigurationError(f"{output} exists", remedy="name another folder")
    processes = registered_processes()
    with writing(output):
        output.mkdir(parents=True)
    recorder = AttachedRecorder(output, output, processes=processes)
    try:
        recorder.start()
        say(f"recording {', '.join(f'{name} ({pid})' for pid, name in processes.items())}", err=True)
        if not recorder.has_names:
            say(NAMES_UNKNOWN, err=True)
        with suppress(KeyboardInterrupt), terminated_like_interrupted():
            threading.Event().wait(seconds)
        report = recorder.pause()
    finally:
        recorder.stop()
    say(f"trace: {output}")
    if report.fault or report.discarded_events or report.lost_packets:
        lost = report.fault or f"{report.discarded_events} events and {report.lost_packets} packets were lost"
        say(f"the trace is incomplete: {lost}", err=True)
        raise typer.Exit(exit_codes.INVALID)
