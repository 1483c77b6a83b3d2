"""Decides whether a job of the lab's runner may begin, and says why not in one line.

``job-started.sh`` asks it and carries out the answer. It fails closed: what it did not expect is a refusal, too.
"""

from __future__ import annotations

import argparse
import os
import sys
import syslog
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NoReturn

from lab.runner.allow_list import Demands, parse_allow_list
from lab.runner.authorise import authorise
from lab.runner.files import ROOT, read_configuration
from lab.runner.job import read_event, read_job
from lab.runner.machine import require_machine
from lab.runner.refusal import Refused, annotation, quoted

CONFIGURATION: Final = Path("/etc/ldos-lab/runner.toml")


def check(
    environment: Mapping[str, str],
    configuration: Path,
    *,
    owner: int = ROOT,
    require: Callable[[Demands], None] = require_machine,
) -> str:
    """Line for the log on a job that may run now: that it may at all, and that the machine is ready.

    Args:
        configuration: the allow-list.
        owner: UID of the user, other than root, who may own the allow-list.
        require: refuses a machine that does not meet demands.

    Raises:
        Refused: why it may not.
    """
    allowed = parse_allow_list(read_configuration(configuration, owner=owner))
    job = read_job(environment)
    commit = authorise(job, read_event(job, owner=os.geteuid()), allowed)
    require(allowed.demands)
    giver = job.actor if job.actor == job.triggering_actor else f"{job.actor} and {job.triggering_actor}"
    return f"allowed: {job.event} of {job.repository}, measures {commit}, word of {giver}, {job.workflow_ref}"


def run() -> None:
    """Entry point: exit status 0 lets the job begin."""
    parser = argparse.ArgumentParser(prog="job-started", description="Lets a job of the lab's runner begin, or not.")
    parser.add_argument("--configuration", type=Path, default=CONFIGURATION, help="the allow-list, root's own")
    arguments = parser.parse_args()
    _note(_checked(lambda: check(os.environ, arguments.configuration)))


def _checked(attempt: Callable[[], str]) -> str:
    try:
        return attempt()
    except Refused as refusal:
        _refuse(str(refusal))
    except Exception as error:  # noqa: BLE001 - whatever it is, the job must not begin
        _refuse(f"the hook itself failed: {type(error).__name__} {quoted(str(error))}")


def _refuse(reason: str) -> NoReturn:
    _note(f"refused: {reason}")
    sys.stdout.write(f"{annotation(reason)}\n")
    raise SystemExit(1)


def _note(line: str) -> None:
    """For the lab: the machine's own log."""
    syslog.openlog("ldos-lab", syslog.LOG_PID, syslog.LOG_AUTH)
    syslog.syslog(syslog.LOG_NOTICE, line)


if __name__ == "__main__":
    run()
