"""Judges a commit again, from the raw trials of the lab's machines.

Usage: .venv/bin/python .ci/results/judge.py RECEIVED MADE --commit SHA --scenarios "NAMES" --project FOLDER

RECEIVED/trials-LABEL/RUN/SCENARIO/{trials.json,base/trials.json} is what each machine has measured, and
RECEIVED/result-LABEL/result.json what it has made of it. HOST_CLASSES has the labels, a JSON list. FOLDER is the
project as its default branch has it: the settings of its gate count, and the calibrations in its repository.

Of the two verdicts the worse one counts: only the machine knows what never became a trial. Trials that are missing,
that are of another commit or that cannot be read are an error of that machine. What measured code wrote into its own
trials cannot be seen here: it ran as the user who recorded them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import records
from artifacts import find_artifact
from folders import read_folder
from github_api import Failed, parse_commit
from labels import parse_labels
from provenance import require_commit, require_past
from pull_requests import parse_queued
from statuses import VERDICTS, State

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.text import one_line
from pytest_ldos.cli.say import metric_names
from pytest_ldos.judge.baseline.store import BaselineStores
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import GateResult
from pytest_ldos.judge.gate.verdict import Tone, Verdict, worst
from pytest_ldos.judge.judging import Grounds, judge
from pytest_ldos.measure.trial.artifacts import decode_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.options import OPTIONS
from pytest_ldos.scenario.settings import Sources, read_toml
from pytest_ldos.show.report.json_text import read_document

_RECORD: Final = re.compile(records.FORM)
_STATES: Final = {
    Verdict.REGRESSED: State.FAILURE,
    Verdict.ACCEPTED: State.SUCCESS,
    Verdict.PASSED: State.SUCCESS,
    Verdict.IMPROVED: State.SUCCESS,
}


@dataclass(frozen=True)
class Pair:
    """Interleaved trials of one scenario on one stack."""

    head: TrialSet
    base: TrialSet


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The requested measurement.

    Attributes:
        base: commit; empty where every one is taken that all trials agree on.
        scenarios: names.
        project: settings and calibrations of the default branch.
    """

    commit: str
    base: str
    scenarios: frozenset[str]
    project: Path

    @property
    def sources(self) -> Sources:
        return Sources({}, {}, read_toml(self.project))


def main() -> int:
    """Entry point; a machine without sound trials is an error in the file, not of this program."""
    arguments = _parse_arguments()
    queued = parse_queued(arguments.ref)
    asked = Asked(
        commit=arguments.commit,
        base=queued.base if queued else arguments.base,
        scenarios=frozenset(arguments.scenarios.split()),
        project=arguments.project,
    )
    try:
        labels = parse_labels(os.environ.get("HOST_CLASSES", ""))
        bases, hosts = {asked.base} - {""}, {}
        for label in labels:
            hosts[label] = _judge(arguments.received, label, asked, bases)
    except (Failed, LdosError) as error:
        sys.stderr.write(f"judge: {one_line(str(error))}\n")
        return 2
    for label, found in hosts.items():
        sys.stdout.write(f"{label}: {found['state']}: {found['text']}\n")
    if len(bases) == 1:
        verdicts = {"commit": asked.commit, "base": bases.pop(), "hosts": hosts}
        arguments.made.mkdir(exist_ok=True)
        (arguments.made / VERDICTS).write_text(json.dumps(verdicts), "utf-8")
    return 0


def _judge(received: Path, label: str, asked: Asked, bases: set[str]) -> dict[str, str]:
    """State and text of the machines with a label; adds the base of their trials."""
    try:
        pairs = _read_pairs(received, label, asked)
        if not asked.base:
            bases |= {each.base.commit for each in pairs}
        results = _decide(pairs, asked)
        machines = _machines_verdict(received, label)
    except (Failed, LdosError) as error:
        return {"state": State.ERROR, "text": one_line(str(error))[:400]}
    return _word(results, machines, is_strict=_is_strict(asked.sources))


def _read_pairs(received: Path, label: str, asked: Asked) -> list[Pair]:
    """The trials of a machine, each scenario that was asked for among them.

    Raises:
        Failed: some are missing, or of another commit.
        LdosError: some cannot be read.
    """
    folder = find_artifact(received, "trials", label)
    if folder is None or not folder.is_dir():
        raise Failed(f"{label} left no trials")
    files = read_folder(folder, _RECORD, most=records.MOST, largest=records.LARGEST)
    heads = [path for path in files if not path.endswith(f"/{records.BASE}")]
    now = datetime.now(UTC)
    pairs = [_read_pair(files, path.removesuffix(records.HEAD), folder, asked, now) for path in heads]
    missing = asked.scenarios - {each.head.scenario for each in pairs}
    if missing:
        raise Failed(f"{label} left no trials of {', '.join(sorted(missing))}")
    return pairs


def _read_pair(files: Mapping[str, bytes], place: str, folder: Path, asked: Asked, now: datetime) -> Pair:
    if f"{place}{records.BASE}" not in files:
        raise Failed(f"{place}: there are no trials of the base")
    head, base = (_read(files[f"{place}{name}"], folder / place / name, now) for name in (records.HEAD, records.BASE))
    require_commit(head, f"{place}{records.HEAD}", asked.commit)
    require_commit(base, f"{place}{records.BASE}", asked.base)
    if not head.session or head.session != base.session:
        raise Failed(f"{place}: head and base were not interleaved")
    return Pair(head, base)


def _read(content: bytes, file: Path, now: datetime) -> TrialSet:
    trials = decode_trials(content.decode("utf-8", errors="replace"), file)
    require_past(trials, str(file), now)
    return trials


def _decide(pairs: Sequence[Pair], asked: Asked) -> list[GateResult]:
    """The result of each scenario and stack, with the settings and calibrations of the project."""
    own = metric_names(each for pair in pairs for each in (pair.head, pair.base))
    scenarios = len({pair.head.scenario for pair in pairs})  # each stack was measured by a pytest run of its own
    policy = Policy.configured(asked.sources.toml.gate, scenarios=scenarios, own=own)
    stores = BaselineStores(
        repository=asked.project / asked.sources.value("baselines"),
        local=asked.project / ".none",
        repository_gates=True,
    )
    grounds = (
        Grounds.given(pair.head, pair.base, Path(records.BASE), stores=stores, policy=policy, label="base")
        for pair in pairs
    )
    return [judge(pair.head, each).result for pair, each in zip(pairs, grounds, strict=True)]


def _machines_verdict(received: Path, label: str) -> Verdict:
    """The machine's own verdict.

    Raises:
        Failed: it says nothing.
        LdosError: it cannot be read.
    """
    folder = find_artifact(received, "result", label)
    file = None if folder is None else folder / "result.json"
    if file is None or file.is_symlink() or not file.is_file():
        raise Failed(f"{label} left no result")
    machines = read_document(file).verdict
    if machines is None:
        raise Failed(f"{label} has judged nothing")
    return machines


def _word(results: Sequence[GateResult], machines: Verdict, *, is_strict: bool) -> dict[str, str]:
    own = worst(each.verdict for each in results)
    decided = worst([own, machines])
    if decided.tone is Tone.DOUBT and not is_strict:
        return {"state": State.SUCCESS, "text": decided.word}
    names = {each.scenario for each in results if each.verdict is decided}
    by_machine = "" if decided is own else ", says the machine"
    of = f": {', '.join(sorted(names))}" if names and decided is not Verdict.PASSED else ""
    text = f"{decided.word}{of}{by_machine}{_unjudged(results)}"
    return {"state": _STATES.get(decided, State.ERROR), "text": text}


def _unjudged(results: Sequence[GateResult]) -> str:
    """The metrics that the machine could not judge, in words."""
    names = {found.metric for each in results for found in each.comparisons if found.verdict is Verdict.NOT_JUDGED}
    return f"; not judged there: {', '.join(sorted(names))}" if names else ""


def _is_strict(sources: Sources) -> bool:
    asked = sources.value(OPTIONS["strict"].name)
    return True if asked is None else bool(asked)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="judge", description="Decides from the raw trials of machines of the lab.")
    parser.add_argument("received", type=Path)
    parser.add_argument("made", type=Path, help=f"folder that gets {VERDICTS}")
    parser.add_argument("--commit", required=True, type=parse_commit)
    parser.add_argument("--base", default="", type=_commit_or_none, help="that trials have to be compared with")
    parser.add_argument("--ref", default="", help="branch of the run, which may be a merge queue's")
    parser.add_argument("--scenarios", required=True, help="names, separated by blanks")
    parser.add_argument("--project", required=True, type=Path, help="the project as its default branch has it")
    return parser.parse_args()


def _commit_or_none(text: str) -> str:
    return parse_commit(text) if text else ""


if __name__ == "__main__":
    sys.exit(main())
