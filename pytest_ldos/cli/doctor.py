"""``ldos doctor``: whether this machine can measure, and how well."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.cli.paths import sources_here, terminal
from pytest_ldos.cli.say import ask, emit, say
from pytest_ldos.doctor.changes import ChangeLog, changes_file
from pytest_ldos.doctor.diagnose import diagnose, worst
from pytest_ldos.doctor.finding import Finding, Status
from pytest_ldos.doctor.fix import Fix
from pytest_ldos.doctor.machine import Machine
from pytest_ldos.doctor.mend import describe_question, mend
from pytest_ldos.host.fingerprint import take_fingerprint
from pytest_ldos.robot.stack.choose import describe_stack
from pytest_ldos.scenario.scenario_table import BUILT_IN_SCENARIOS
from pytest_ldos.scenario.words import StackKind
from pytest_ldos.show.report.diagnosis import render_diagnosis, render_diagnosis_json

_EXIT_CODES: Final = {Status.OK: 0, Status.WARNING: 0, Status.ERROR: exit_codes.INVALID}


def doctor(
    *,
    stack: Annotated[
        StackKind | None, typer.Option(help="Stack that is to be measured; that of the settings by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    fix: Annotated[bool, typer.Option("--fix", help="Offer to mend what can be mended from here.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Put back the settings that --fix has changed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --fix: mend everything without asking.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="End with 12 where there are only warnings.")] = False,
    host_class: Annotated[
        bool, typer.Option("--host-class", help="Print only the class of this machine, by which baselines are kept.")
    ] = False,
) -> None:
    """Look for what this machine lacks, and what would disturb it.

    Exit code: 0 no errors, 11 an error (a measurement would be invalid or not begin), 12 only
    warnings, with --strict.
    """
    if as_json + fix + undo > 1 or (yes and not fix):
        raise ConfigurationError("these options do not go together", remedy="one of --json, --fix [--yes], --undo")
    machine = _this_machine(stack)
    if host_class:
        _refuse_beside_host_class(any((as_json, fix, undo, strict)))
        say(_host_class(machine))
        return
    if undo:
        _undo(machine)
        return
    findings = diagnose(machine)
    _show(findings, stack=machine.stack.kind.value, as_json=as_json)
    if fix and _mend(findings, machine, may_ask=not yes):
        findings = diagnose(machine)
        _show(findings, stack=machine.stack.kind.value, as_json=False)
    raise typer.Exit(_exit_code(worst(findings), strict=strict))


def _this_machine(kind: StackKind | None) -> Machine:
    sources = sources_here()
    spec = sources.scenario(next(iter(BUILT_IN_SCENARIOS)), {}).stack
    return Machine(
        output=sources.folder("output"), stack=spec if kind is None else dataclasses.replace(spec, kind=kind)
    )


def _refuse_beside_host_class(others: bool) -> None:
    if others:
        raise ConfigurationError("--host-class prints one line and looks at nothing", remedy="give it alone")


def _host_class(machine: Machine) -> str:
    info = describe_stack(machine.stack)
    return take_fingerprint(rmw=info.rmw, versions=info.versions).host_class


def _exit_code(status: Status, *, strict: bool) -> int:
    return exit_codes.INCONCLUSIVE if strict and status is Status.WARNING else _EXIT_CODES[status]


def _show(findings: Sequence[Finding], *, stack: str, as_json: bool) -> None:
    if as_json:
        emit(render_diagnosis_json(findings, stack=stack))
        return
    width, color = terminal()
    emit(render_diagnosis(findings, width=width, color=color))


def _mend(findings: Sequence[Finding], machine: Machine, *, may_ask: bool) -> bool:
    """Applies the fixes that are agreed to; whether any was.

    Raises:
        ConfigurationError: there is nobody to ask.
    """
    if may_ask and not sys.stdin.isatty() and any(finding.fix for finding in findings):
        raise ConfigurationError("--fix asks before each change, but this is no terminal", remedy="add --yes")
    changes = ChangeLog(changes_file(machine.environment))
    has_tried = False
    for line in mend(findings, machine, changes, agrees=_agrees if may_ask else _always):
        say(line)
        has_tried = True
    if changes.changes:
        say("settings can be put back: ldos doctor --undo")
    return has_tried


def _agrees(fix: Fix) -> bool:
    return ask(describe_question(fix))


def _always(fix: Fix) -> bool:
    return True


def _undo(machine: Machine) -> None:
    changes = ChangeLog(changes_file(machine.environment))
    if not changes.changes:
        say("nothing to put back")
    for line in changes.undo(machine):
        say(line)
