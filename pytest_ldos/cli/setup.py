"""``ldos init | doctor | ros-packages | measure``: sets up a project and the machine, and measures as a CI job does."""

from __future__ import annotations

import dataclasses
import os
import shlex
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.files import find_carried, write_atomically
from pytest_ldos.base.text import Rendered, counted
from pytest_ldos.campaign.versions.build import build_packages, needed_by
from pytest_ldos.campaign.versions.workspace import Workspace
from pytest_ldos.cli.measure_commit import main
from pytest_ldos.cli.say import ask, emit, emit_fitted, say, sources_here
from pytest_ldos.doctor.changes import ChangeLog, Finding, Machine, Status, changes_file, describe_question, mend
from pytest_ldos.doctor.diagnose import diagnose, worst
from pytest_ldos.host.checkout import GitWords, ask_git, why_no_commit
from pytest_ldos.scenario.options import OWN_FILE, PROJECT_FILE
from pytest_ldos.scenario.scenario_table import BUILT_IN_SCENARIOS
from pytest_ldos.scenario.words import StackKind
from pytest_ldos.show.page.formats import Format, render, to_json
from pytest_ldos.show.page.model import Bullets, Page, Section, Table, Text, Tone, Words, names, words

_FILES: Final = {
    PROJECT_FILE: "settings, and a scenario as data: busy_cell",
    "test_arm.py": "a test of each scenario",
    ".github/workflows/request.yml": "the gate of pull requests; put your copy of pytest-ldos in for OWNER and zeros",
    ".gitignore": "results stay out of commits",
}
_NEXT: Final = {
    "ldos doctor": "lists what this machine lacks, each with its remedy",
    "pytest -m baseline": "ten reaches of the arm: the first run is the baseline",
    "pytest -m busy_cell": "the same under load",
}


def init(
    directory: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="Folder to make it in; by default this one.")
    ] = Path(),
) -> None:
    """Create a first project: settings, two scenarios and a workflow.

    Existing files are unchanged, and lines to add to them are printed.
    """
    template = find_carried("examples/first_project")
    places = {name: directory / name for name in _FILES}
    if (own := directory / OWN_FILE).exists():
        places[PROJECT_FILE] = own
    additions = {
        name: _additions(place, (template / name).read_text("utf-8"))
        for name, place in places.items()
        if os.path.lexists(place)
    }
    for name, meaning in _FILES.items():
        if name not in additions:
            write_atomically(places[name], (template / name).read_bytes())
            say(f"wrote {places[name]}: {meaning}")
        elif additions[name]:
            say(f"kept {places[name]}; add to it:")
            for line in ("", *additions[name].splitlines(), ""):
                say(line)
        else:
            say(f"kept {places[name]}, which already exists")
    say("next, with these additions:" if any(additions.values()) else "next:")
    if directory.resolve() != Path.cwd():
        say(f"  cd {shlex.quote(str(directory))}")
    for command, meaning in _NEXT.items():
        say(f"  {command:<20}  # {meaning}")


def _additions(place: Path, wanted: str) -> str:
    """Text to append to an existing file so that it contains the template."""
    if place.name not in (PROJECT_FILE, OWN_FILE, ".gitignore"):
        return ""
    try:
        text = place.read_text("utf-8-sig")
        document = tomllib.loads(text) if place.suffix == ".toml" else {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{place} cannot be read: {error}; nothing was written", remedy="mend it") from None
    if place.suffix == ".toml":
        return "\n\n".join(_missing_tables(document, wanted, is_own=place.name == OWN_FILE))
    ignored = {line.strip().strip("/") for line in text.splitlines()}
    return "\n".join(line for line in wanted.splitlines() if line.strip("/") not in ignored)


def _missing_tables(document: dict[str, Any], wanted: str, *, is_own: bool) -> Iterator[str]:
    """Tables of the template that settings lack; in ``ldos.toml``, ``[tool.ldos]`` is the top level."""
    tool = {"pytest": {}, "ldos": document} if is_own else document.get("tool", {})
    for block in wanted.strip().split("\n\n"):
        _, *keys = block[1 : block.index("]")].split(".")  # of [tool.ldos.scenarios.busy_cell]
        found: Any = tool
        for key in keys[:1] if keys[0] == "pytest" else keys:  # pytest has two names for its table, and uses one
            found = found.get(key) if isinstance(found, dict) else None
        if found is None:
            yield block.replace("[tool.ldos.", "[") if is_own else block


def doctor(
    *,
    stack: Annotated[StackKind | None, typer.Option(help="Stack to measure; by default that of the settings.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    fix: Annotated[bool, typer.Option("--fix", help="Offer to fix what can be fixed from here.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Restore the settings that --fix has changed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --fix, apply all fixes without asking.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="End with 12 if there are only warnings.")] = False,
    host_class: Annotated[
        bool, typer.Option("--host-class", help="Print only this machine's host class, by which baselines are stored.")
    ] = False,
) -> None:
    """Check this machine for missing parts and disturbances.

    Exit code: 0 no errors, 11 an error (a measurement would be invalid or not begin), 12 only warnings with --strict.
    """
    if as_json + fix + undo > 1 or (yes and not fix):
        raise ConfigurationError("these options do not go together", remedy="one of --json, --fix [--yes], --undo")
    sources = sources_here()
    scenario = sources.scenario(next(iter(BUILT_IN_SCENARIOS)), {})
    spec = scenario.stack if stack is None else dataclasses.replace(scenario.stack, kind=stack)
    machine = Machine(output=sources.folder("output"), stack=spec)
    if host_class:
        if as_json or fix or undo or strict:
            raise ConfigurationError("--host-class prints one line and looks at nothing", remedy="give it alone")
        from pytest_ldos.campaign.starts import key_of  # noqa: PLC0415 - imports all that measures

        say(key_of(dataclasses.replace(scenario, stack=spec)).host_class)
        return
    if undo:
        changes = ChangeLog(changes_file(machine.environment))
        if not changes.changes:
            say("nothing to restore")
        for line in changes.undo(machine):
            say(line)
        return
    findings = diagnose(machine)
    _show(findings, stack=machine.stack.kind.value, as_json=as_json)
    if fix and _mend(findings, machine, may_ask=not yes):
        findings = diagnose(machine)
        _show(findings, stack=machine.stack.kind.value, as_json=False)
    codes = {Status.OK: 0, Status.WARNING: exit_codes.INCONCLUSIVE if strict else 0, Status.ERROR: exit_codes.INVALID}
    raise typer.Exit(codes[worst(findings)])


def _show(findings: Sequence[Finding], *, stack: str, as_json: bool) -> None:
    if as_json:
        emit(render_diagnosis_json(findings, stack=stack))
        return
    emit_fitted(render_diagnosis, findings)


def _mend(findings: Sequence[Finding], machine: Machine, *, may_ask: bool) -> bool:
    """Applies the confirmed fixes; True if there were any. Without a terminal, none can be confirmed."""
    if may_ask and not sys.stdin.isatty() and any(finding.fix for finding in findings):
        raise ConfigurationError("--fix asks before each change, but this is not a terminal", remedy="add --yes")
    changes = ChangeLog(changes_file(machine.environment))
    has_tried = False
    for line in mend(findings, machine, changes, agrees=lambda fix: not may_ask or ask(describe_question(fix))):
        say(line)
        has_tried = True
    if changes.changes:
        say("settings can be restored: ldos doctor --undo")
    return has_tried


def ros_packages(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME…]", help="Packages; by default those that the project's stack needs and its workspace lacks."
        ),
    ] = None,
) -> None:
    """Build the ROS packages that a measured stack needs.

    Prints their setup script; in a shell with ROS 2 sourced: . "$(ldos ros-packages)". Packages in a sourced prefix are
    not built; if none is missing, nothing is printed. Builds are kept in the user's cache.
    """
    if not names:  # without those in the project's workspace, which are built with it
        sources = sources_here()
        own = Workspace(sources.root, sources.toml.base.workspaces(sources.root)).packages()
        names = [each for each in needed_by(sources.stack_spec()) if each not in own]
    if (script := build_packages(names, announce=lambda text: say(text, err=True))) is not None:
        say(str(script))


def measure(
    part: Annotated[str, typer.Argument(metavar="[pack]", help="Collect results for other machines.")] = "",
    *,
    base: Annotated[
        str, typer.Option(envvar="GATE_BASE", help="Revision to compare with; by default the stored baseline.")
    ] = "",
    stack: Annotated[
        str, typer.Option(envvar="GATE_STACK", help="ros2, embedded, or both; by default that of the settings.")
    ] = "",
    commit: Annotated[
        str, typer.Option(envvar="GATE_COMMIT", help="Commit, 40 digits; by default the checked-out one.")
    ] = "",
) -> None:
    """Measure a commit as a CI job does.

    Tests, scenarios and settings are always those of the checkout. Writes the report to results/. On ros2, builds the
    workspaces of both versions and the packages of pytest-ldos that they need; ROS 2 is sourced if it is in /opt/ros.
    Further settings are variables: GATE_SCENARIOS, GATE_TRIALS, GATE_MAX_TRIALS, GATE_MINUTES, GATE_RECORD, GATE_FROM.

    Exit code: pytest's: 10 regressed, 11 invalid or infra, 12 no verdict; for two stacks, the worse one's.
    """
    found = commit or ask_git(Path(), "rev-parse", "--verify", "--quiet", "HEAD")
    if not found:
        words = why_no_commit(Path()) or GitWords("git names no commit")
        raise ConfigurationError(
            f"no commit is checked out here: {words.reason}",
            remedy=words.remedy or "call it in the root of a git checkout",
        )
    os.environ.update(GATE_BASE=base, GATE_COMMIT=found, GATE_STACK=stack, GATE_BIN=str(Path(sys.executable).parent))
    raise typer.Exit(main([*filter(None, [part])]))


_TONES: Final = {Status.OK: Tone.GOOD, Status.WARNING: Tone.DOUBT, Status.ERROR: Tone.BAD}
_COLUMNS: Final = (*words("status", "check"), *names("finding"))


def render_diagnosis(findings: Sequence[Finding], *, width: int, color: bool) -> Rendered:
    """A row per finding, the remedies, on unbroken lines to be copied, and a line with the counts of problems."""
    rows = tuple((Words(each.status.value, _TONES[each.status]), each.name, each.text) for each in findings)
    remedies: dict[str, list[str]] = {"to do": [], "possible, too": []}
    for each in findings:
        if each.remedy:
            remedies["possible, too" if each.status is Status.OK else "to do"].append(f"{each.name} → {each.remedy}")
    page = Page(
        title="",
        blocks=(
            Table(columns=_COLUMNS, rows=rows),
            *(Section(title, (Bullets(tuple(lines), is_whole=True),)) for title, lines in remedies.items()),
            Section("", tuple(_summary(findings))),
        ),
    )
    return render(page, Format.TERMINAL, width=width, color=color)


def _summary(findings: Sequence[Finding]) -> Iterator[Text]:
    counts = {status: sum(finding.status is status for finding in findings) for status in Status}
    parts = [counted(counts[each], each.value) for each in (Status.ERROR, Status.WARNING) if counts[each]]
    yield Text(", ".join(parts) or "nothing is wrong", _TONES[worst(findings)])
    if mendable := sum(finding.fix is not None for finding in findings):
        yield Text(f"{mendable} can be fixed: ldos doctor --fix")


def render_diagnosis_json(findings: Sequence[Finding], *, stack: str) -> Rendered:
    """The diagnosis as one JSON object; ``fix`` is what ``--fix`` would do, or null."""
    document = {
        "schema": 1,
        "stack": stack,
        "status": worst(findings).value,
        "findings": [
            {
                **vars(finding),
                "status": finding.status.value,
                "fix": finding.fix
                and {"description": finding.fix.description, "reversible": finding.fix.is_reversible},
            }
            for finding in findings
        ],
    }
    return to_json(document, indent=2)
