"""Accepted changes for the worse: the project's file of them, and those that apply to a comparison.

The file is read from the commit of the base, never from the measured one, so that an acceptance must be merged before
what it accepts. It names the lines in which the accepted version differed from its base. It therefore applies under any
name of the commit (after a rebase, a squash, in a merge queue), and to no other change.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ConfigurationError, RecordUnreadable, refuse_unknown
from pytest_ldos.base.files import PlainReader, left_by_git, write_atomically
from pytest_ldos.host.checkout import ask_git
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.measure.trial.record import TrialSet

FILE: Final = "ldos-accepted.toml"
"""Name of the file, in the project's folder."""

SUCCESS_RATE: Final = "success-rate"
"""Stands for the success rate in place of a metric's name, which has no hyphen."""

_TABLES: Final = "accepted"
_HEADER: Final = "# Accepted changes for the worse (ldos accept). Read from the version that a run is compared with.\n"
_REMEDY: Final = f"correct {FILE}, or restore its last version that can be read; until then nothing is accepted"


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
        tables = tomllib.loads(os.fsencode(text).decode("utf-8"))
        refuse_unknown(tables, {_TABLES}, f"table in {where}:")
        reader, entries = PlainReader(is_whole=True), tables.get(_TABLES, [])
        found: tuple[Accepted, ...] = reader.read(tuple[Accepted, ...], entries, _TABLES)
    except (ValueError, TypeError, RecursionError, ConfigurationError) as error:
        what, remedy = left_by_git(text) or (f"cannot be read: {error}", _REMEDY)
        raise RecordUnreadable(f"{where} {what}", remedy=remedy) from None
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
        return parse_accepted(os.fsdecode(file.read_bytes()), str(file))
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise RecordUnreadable(f"{file} cannot be read: {error.strerror}", remedy=_REMEDY) from None


def find_accepted(project: Path, head: TrialSet, base: TrialSet) -> dict[str, Accepted]:
    """The changes that the base's commit accepts, by metric, if they are those from the base to the head.

    None if a commit is unknown to git or had uncommitted changes. `RecordUnreadable` if the base's file is.
    """
    commit = _whole(project, base.commit)
    text = ask_git(project, "show", f"{commit}:./{FILE}") if commit else ""
    changes = parse_accepted(text, f"{FILE} of {base.commit}") if text else ()
    return select_accepted(changes, project, head, base)


def select_accepted(changes: Iterable[Accepted], project: Path, head: TrialSet, base: TrialSet) -> dict[str, Accepted]:
    """The largest of these changes of each metric that is between the commits of head and base."""
    return _select(changes, BaselineKey.of(head), project, base.commit, head.commit)


def find_step(project: Path, commit: str, key: BaselineKey, metric: str) -> Accepted | None:
    """The change that a commit brought, compared with its first parent, if this checkout's file accepts it."""
    changes = read_accepted(project)
    parent = ask_git(project, "rev-parse", f"{_whole(project, commit)}^") if changes else ""
    return _select(changes, key, project, parent or "", commit).get(metric)


def _select(changes: Iterable[Accepted], key: BaselineKey, project: Path, base: str, head: str) -> dict[str, Accepted]:
    """The largest change of each metric in this scenario and stack that is between these commits."""
    own = [each for each in changes if (each.scenario, each.stack) == (key.scenario, key.stack)]
    difference = digest_difference(project, base, head) if own else ""
    ascending = sorted(own, key=lambda each: abs(each.size))
    return {each.metric: each for each in ascending if difference and each.difference == difference}


def digest_difference(project: Path, base: str, head: str) -> str:
    """Digest of the added and removed lines between two commits; empty if there are none, or git does not know both.

    As ``git patch-id``, it includes neighbouring lines and ignores line numbers.
    """
    how = ("-r", "-p", "--unified=3", "--full-index", "--binary", "--no-renames", "--no-ext-diff", "--no-textconv")
    versions = _whole(project, base), _whole(project, head)
    text = ask_git(project, "diff-tree", *how, "--ignore-submodules=none", *versions, "--")
    # Lines of positions, and of whole files' digests, depend on unchanged lines.
    lines = [line for line in (text or "").split("\n") if not line.startswith(("@@", "index "))]
    return hashlib.sha256(os.fsencode("\n".join(lines))).hexdigest() if text else ""


def _whole(project: Path, commit: str) -> str:
    """The whole digest of a commit; empty if git knows none or several. A branch or tag of this name is no commit."""
    found = ask_git(project, "rev-parse", f"--disambiguate={commit}") or ""
    return found if "\n" not in found else ""
