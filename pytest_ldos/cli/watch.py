"""``ldos watch``: a rolling view of a system while it is recorded, with alarms."""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import LdosError, RecordingFailed, refuse_unknown, require
from pytest_ldos.base.ros2 import PathSpec
from pytest_ldos.base.text import NS_PER_MS, counted, describe_duration, seconds_to_ns
from pytest_ldos.cli.say import complain, parse_duration_s, redraw, say, sources_here
from pytest_ldos.fleet.live import LiveModel
from pytest_ldos.host.temporary import temporary_folder, terminated_like_interrupted
from pytest_ldos.record.attach import RunningSession, copy_names
from pytest_ldos.show.report.analysis import render_live

_MOST_SAVED: Final = 20  # traces, so that a long watch does not fill the disk


def watch(
    session: Annotated[str | None, typer.Argument(metavar="SESSION", help="Its name; by default the only one.")] = None,
    *,
    interval: Annotated[str, typer.Option(help="Time between readings; each shows the last two intervals.")] = "5s",
    duration: Annotated[str | None, typer.Option("--for", metavar="TIME", help="End after this time: 10min.")] = None,
    deadline: Annotated[list[str] | None, typer.Option(help="Deadline of a path, or of a topic's transport.")] = None,
    keep: Annotated[str | None, typer.Option(help="Keep the last 60s, 10min, … of the recording for alarms.")] = None,
    output: Annotated[Path, typer.Option(metavar="DIR", help="Folder for what --keep saves.")] = Path("ldos-watch"),
    names: Annotated[list[Path] | None, typer.Option(metavar="TRACE", help="Start of nodes before SESSION.")] = None,
) -> None:
    """Watch a system while an LTTng session records it.

    Shows rates and latencies of topics, the project's paths, callbacks and executors. The session is rotated at each
    interval, and its files stay. With --keep, what was recorded before the command stays; later parts are deleted when
    they are older, and an alarm saves the present ones as a trace.

    An alarm is a line: a missed deadline, or a topic whose regular messages ended. Without a terminal, each interval is
    a line, too. Ends at Ctrl-C, SIGTERM or the end of --for, with a summary.

    Exit code: 0 no alarm, 9 an alarm, 11 the session ended without an alarm.
    """
    paths, limits_ns = _parse_deadlines(deadline or (), sources_here().toml.paths)
    interval_s = parse_duration_s(interval, what="--interval")
    keep_ns = None if keep is None else seconds_to_ns(parse_duration_s(keep, what="--keep"))
    limit_s = math.inf if duration is None else parse_duration_s(duration, what="--for")
    require(interval_s > 0, "--interval is 0", remedy="write it as 5s")
    watched, totals, code, saved, drawn = RunningSession(session), Counter[str](), 0, 0, 0
    began_s = ended_s = time.monotonic()
    with temporary_folder("ldos-watch-") as folder, terminated_like_interrupted():
        model = LiveModel(folder, paths, limits_ns, interval_ns=seconds_to_ns(interval_s), keep_ns=keep_ns)
        try:
            watched.rotate()
            kept = "" if keep is None else f"; those from now on are deleted after {keep}, or saved in {output}"
            say(f"watching session {watched.name}, whose files stay in {watched.archives}{kept}")
            kept_names = [folder / "kept"] if not names and copy_names(folder / "kept") else []
            model.learn(*(names or kept_names), watched.archives)
            while ended_s < began_s + limit_s:
                time.sleep(max(0.0, min(ended_s + interval_s, began_s + limit_s) - time.monotonic()))
                since_ns, ended_s = seconds_to_ns(ended_s), time.monotonic()
                reading = model.add(watched.rotate(), since_ns=since_ns, now_ns=time.monotonic_ns())
                counts = Counter(events=reading.events, lost=reading.lost, alarms=len(reading.alarms))
                totals += counts
                now = datetime.now().astimezone()
                lines = [f"{now:%H:%M:%S}  {each}" for each in (*reading.notes, *reading.alarms)]
                title = f"{now:%H:%M:%S}  {_describe(counts)}"
                drawn = redraw(partial(render_live, title, reading.flow, paths), drawn, lines)
                if reading.alarms and keep is not None and saved < _MOST_SAVED:
                    target, saved, drawn = output / f"{watched.name}-{now:%Y%m%dT%H%M%S.%f}", saved + 1, 0
                    try:
                        model.save(target)
                        say(f"saved what led to it{', the last time' * (saved == _MOST_SAVED)}: ldos analyze {target}")
                    except LdosError as error:  # such as a full disk
                        complain(error)
        except KeyboardInterrupt:
            pass
        except RecordingFailed as error:
            complain(error)
            code = exit_codes.INVALID
        for name in (each.rpartition("=")[0] for each in deadline or ()):
            if model.seen.isdisjoint((f"path {name}", f"topic {name}")):
                say(f"deadline of {name}: no message was seen to check it with")
        say(f"watched {describe_duration(time.monotonic() - began_s)}: {_describe(totals)}")
    raise typer.Exit(exit_codes.ALARM if totals["alarms"] else code)


def _describe(counts: Counter[str]) -> str:
    lost = f", {counts['lost']} lost" if counts["lost"] else ""
    return f"{counted(counts['events'], 'event')}{lost}, {counted(counts['alarms'], 'alarm')}"


def _parse_deadlines(asked: Sequence[str], paths: Sequence[PathSpec]) -> tuple[list[PathSpec], dict[str, int]]:
    """The paths with the asked deadlines, and the deadlines of topics, ns."""
    found, limits_ns = {each.name: each for each in paths}, dict[str, int]()
    for each in asked:
        name, _, number = each.rpartition("=")
        is_number = re.fullmatch(r"[0-9]+(\.[0-9]+)?", number) is not None
        require(is_number and float(number) > 0, f"--deadline is {each!r}", remedy="write it as NAME=MILLISECONDS")
        if name.startswith("/") and name not in found:
            limits_ns[name] = round(float(number) * NS_PER_MS)
        else:
            refuse_unknown([name], found, "path")
            found[name] = replace(found[name], deadline_ms=float(number))
    return list(found.values()), limits_ns
