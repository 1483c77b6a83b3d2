"""Accepted changes for the worse: the project's file of them, and those that apply to a comparison.

The file is read from the commit of the base, never from the measured one, so that an acceptance must be merged before
what it accepts. It names the lines in which the accepted version differed from its base. It therefore applies under any
name of the commit (after a rebase, a squash, in a merge queue), and to no other change.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ConfigurationError, RecordUnreadable, refuse_unknown
from pytest_ldos.base.files import PlainReader, left_by_git, write_atomically
from pytest_ldos.host.checkout import ask_git, is_changed
from pytest_ldos.measure.trial.record import TrialSet

FILE: Final = "ldos-accepted.toml"
"""Name of the file, in the project's folder."""

SUCCESS_RATE: Final = "success_rate"
"""Name of the success rate in place of a metric's."""

_TABLES: Final = "accepted"
_HEADER: Final = (
    "# Changes for the worse that are wanted, by `ldos accept`. Read from the version that a run is compared with.\n"
)
_REMEDY: Final = f"correct {FILE}, or restore its last version that can be read; until then nothing is accepted"
_OF_POSITION: Final = ("@@", "index ")
"""Beginnings of lines of a difference that depend on unchanged lines."""


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A change for the worse that somebody accepted.

    Attributes:
        metric: its name, or `SUCCESS_RATE`.
        size: largest accepted change, head over base less 1; of the success rate, the largest share of failed trials.
        by, at: who accepted it, and when (ISO 8601).
        commit, base: abbreviated commits of the run in which it was measured.
        difference: of these commits (`digest_difference`).
    """

    scenario: str
    stack: str
    metric: str
    size: float
    reason: str
    by: str
    at: str
    commit: str
    base: str
    difference: str


def parse_accepted(text: str, where: str) -> tuple[Accepted, ...]:
    """The changes in a file's text; `RecordUnreadable` names `where` if there is an error."""
    try:
        tables = tomllib.loads(text)
        refuse_unknown(tables, {_TABLES}, f"table in {where}:")
        found: tuple[Accepted, ...] = PlainReader(is_whole=True).read(
            tuple[Accepted, ...], tables.get(_TABLES, []), _TABLES
        )
    except (ValueError, TypeError, RecursionError, ConfigurationError) as error:
        by_git = left_by_git(text)
        what, remedy = (f" {by_git[0]}", by_git[1]) if by_git else (f" cannot be read: {error}", _REMEDY)
        raise RecordUnreadable(f"{where}{what}", remedy=remedy) from None
    return found


def append_accepted(project: Path, changes: Iterable[Accepted]) -> Path:
    """Adds changes to the project's file, which must be readable; for other errors see `write_atomically`."""
    read_accepted(project)
    file = project / FILE
    text = file.read_text("utf-8") if file.exists() else _HEADER
    for each in changes:
        lines = (f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in asdict(each).items())
        text += f"\n[[{_TABLES}]]\n{''.join(lines)}"
    write_atomically(file, text)
    return file


def read_accepted(project: Path) -> tuple[Accepted, ...]:
    """The changes in the file of a checkout; none without one. `RecordUnreadable` if it is damaged."""
    file = project / FILE
    try:
        return parse_accepted(file.read_text("utf-8"), str(file))
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise RecordUnreadable(f"{file} cannot be read: {error}", remedy=_REMEDY) from None


def find_accepted(project: Path, head: TrialSet, base: TrialSet) -> tuple[Accepted, ...]:
    """The accepted changes of the base's commit that apply to a comparison.

    None if a commit is unknown to git or had uncommitted changes. `RecordUnreadable` if the base's file is.
    """
    text = None
    if head.commit and base.commit and not is_changed(head.commit) and not is_changed(base.commit):
        text = ask_git(project, "show", "--end-of-options", f"{base.commit}:./{FILE}")
    if not text:
        return ()
    key = head.scenario, head.stack_kind
    found = [each for each in parse_accepted(text, f"{FILE} of {base.commit}") if (each.scenario, each.stack) == key]
    difference = digest_difference(project, base.commit, head.commit) if found else ""
    return tuple(each for each in found if difference and each.difference == difference)


def find_step(project: Path, commit: str, changes: Iterable[Accepted]) -> Accepted | None:
    """The largest of these changes that a commit brought, compared with its first parent."""
    found = [*changes]
    difference = digest_difference(project, f"{commit}^", commit) if found else ""
    same = (each for each in found if difference and each.difference == difference)
    return max(same, key=lambda each: abs(each.size), default=None)


def digest_difference(project: Path, base: str, head: str) -> str:
    """Digest of the added and removed lines between two commits, without `FILE`; empty if there are none.

    As ``git patch-id``, it includes neighbouring lines and ignores line numbers. It is empty, too, if git does not know
    a commit.
    """
    how = ("-r", "-p", "--unified=3", "--full-index", "--binary", "--no-renames", "--no-ext-diff", "--no-textconv")
    files = (":(top)", f":(top,exclude,glob)**/{FILE}")
    text = ask_git(project, "diff-tree", *how, "--end-of-options", base, head, "--", *files)
    lines = [line for line in (text or "").split("\n") if not line.startswith(_OF_POSITION)]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest() if text else ""
