"""Checks baselines that machines of the lab have recorded, and says what a maintainer should know of them.

Usage: .venv/bin/python .ci/results/check_baselines.py RECEIVED PROPOSAL --commit SHA

RECEIVED/baselines-LABEL/STACK/HOST CLASS/SCENARIO.json is what was recorded, each by the machine of that label.
PROPOSAL gets ``baselines/``, written again from what was read, and ``pull_request.md``: new beside old, which is below
the working directory's ``baselines/``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from artifacts import label_of, read_artifacts
from github_api import Failed, parse_commit
from proposals import FILE, MARK, TEXT
from provenance import require_commit, require_past

from pytest_ldos.base.errors import LdosError, RecordUnreadable
from pytest_ldos.base.files import write_atomically
from pytest_ldos.base.text import one_line
from pytest_ldos.cli.results import compare_sets
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.judge.baseline.store import merge_trials
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.judging import judge_only
from pytest_ldos.measure.trial.artifacts import decode_trials, encode_trials, read_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.show.report import markdown
from pytest_ldos.show.report.compose import compose, compose_section, without_verdict
from pytest_ldos.show.report.document import Document, Section
from pytest_ldos.show.report.json_text import name_reports

_KIND: Final = "baselines"
_RECORD: Final = FILE.pattern.removeprefix("baselines/")
_MOST: Final = 200
_LARGEST: Final = 64 * 1024 * 1024


def main() -> int:
    """Entry point; 1 where something cannot be proposed, and then nothing is."""
    parser = argparse.ArgumentParser(prog="check_baselines", description="Checks recorded baselines.")
    parser.add_argument("received", type=Path)
    parser.add_argument("proposal", type=Path)
    parser.add_argument("--commit", required=True, type=parse_commit)
    arguments = parser.parse_args()
    try:
        propose(arguments.received, arguments.proposal, commit=arguments.commit)
    except (Failed, LdosError) as error:
        sys.stderr.write(f"check_baselines: {one_line(str(error))}\n")
        return 1
    return 0


def propose(received: Path, proposal: Path, *, commit: str) -> None:
    """Writes what can be proposed."""
    recorded, notes = _unite(_read(received, commit))
    text = _describe(recorded, commit, notes)
    for file, trials in recorded.items():
        write_atomically(proposal / file, encode_trials(trials))
    write_atomically(proposal / TEXT, text)


def _read(received: Path, commit: str) -> Iterator[tuple[str, str, TrialSet]]:
    """Label, file below the repository and trials of all that was recorded."""
    for path, content in read_artifacts(received, _KIND, _RECORD, most=_MOST, largest=_LARGEST).items():
        place = path.partition("/")[2]
        trials = decode_trials(content.decode("utf-8", errors="replace"), received / path)
        file = BaselineKey.of(trials).file(Path("baselines")).as_posix()
        if file != f"baselines/{place}":
            raise Failed(f"{path} holds a baseline that belongs elsewhere: {ascii(file)[:300]}")
        _require_baseline(trials, path, commit)
        yield label_of(path, _KIND), file, trials


def _require_baseline(trials: TrialSet, path: str, commit: str) -> None:
    require_commit(trials, path, commit)
    require_past(trials, path, datetime.now(UTC))
    if not trials.trials or trials.incomplete:
        raise Failed(f"{path} has not all of its trials")
    if trials.watched or trials.distortion:
        raise Failed(f"{path} was watched while it was recorded; such times become no baseline")


def _unite(found: Iterator[tuple[str, str, TrialSet]]) -> tuple[dict[str, TrialSet], list[str]]:
    """Proposed baselines by file: machines of one class share one, which contains their differences."""
    sets: dict[str, list[TrialSet]] = {}
    labels: dict[str, list[str]] = {}
    for label, file, trials in found:
        sets.setdefault(file, []).append(trials)
        labels.setdefault(file, []).append(label)
    shared = dict.fromkeys(" and ".join(each) for each in labels.values() if len(each) > 1)
    notes = [f"{names} are of one host class, and have one baseline." for names in shared]
    return {file: each[0] if len(each) == 1 else merge_trials(each) for file, each in sets.items()}, notes


def _describe(recorded: Mapping[str, TrialSet], commit: str, notes: list[str]) -> str:
    documents = [*_documents(recorded)]
    reports = name_reports(documents, ["" for _ in documents])
    shown = markdown.render(documents[0]) if len(documents) == 1 else markdown.render_several(reports)
    head = [
        f"Baselines that machines of the lab recorded of {commit}, below, next to the present ones.",
        *notes,
    ]
    return f"{MARK}\n" + "".join(f"{line}\n\n" for line in head) + shown.removeprefix(f"{markdown.MARK}\n")


def _documents(recorded: Mapping[str, TrialSet]) -> Iterator[Document]:
    """One for each stack and host class."""
    folders = sorted({Path(file).parent for file in recorded})
    for folder in folders:
        own = {Path(file): trials for file, trials in recorded.items() if Path(file).parent == folder}
        yield compose([*_sections(own, folder)])


def _sections(recorded: Mapping[Path, TrialSet], folder: Path) -> Iterator[Section]:
    known = {file: old for file in recorded if isinstance(old := _read_old(file), TrialSet)}
    pairs = {recorded[file].scenario: (recorded[file], old) for file, old in known.items()}
    if pairs:
        yield from compare_sets(pairs, folder)[0]
    for file, trials in recorded.items():
        if file not in known:
            alone = compose_section(judge_only(trials, Policy()), notes=(str(_read_old(file)),))
            yield without_verdict(alone)


def _read_old(file: Path) -> TrialSet | str:
    """The baseline that is here now; or why there is none to compare with, which must keep no new one away."""
    if not file.is_file():
        return "there is no baseline of it yet"
    try:
        return read_trials(file)
    except RecordUnreadable as error:
        return f"the one that is here cannot be read: {error.message}"


if __name__ == "__main__":
    sys.exit(main())
