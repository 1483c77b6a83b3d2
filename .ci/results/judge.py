"""Judges a commit again, from the raw trials of the lab's machines.

Usage: .venv/bin/python .ci/results/judge.py RECEIVED MADE --commit SHA --scenarios "NAMES" --project FOLDER

RECEIVED/trials-LABEL/RUN/SCENARIO/{trials.json,base/trials.json} is what each machine has measured, and
RECEIVED/result-LABEL/result.json what it has made of it. HOST_CLASSES has the labels, a JSON list. FOLDER is the
project as its default branch has it: the settings of its gate count, and the calibrations in its repository.

Of the two verdicts the worse one counts: only the machine knows what never became a trial. Trials that are missing,
that are of another commit or that cannot be read are an error of that machine. What measured code wrote into its own
trials cannot be seen here: it ran as the user who recorded them.

ACCEPTED, if it is given, holds what maintainers accepted on the pull request (see accepted.py); MADE gets the sizes of
what they accepted for this commit. FOLDER then needs both commits, of which nothing is checked out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import records
from accepted import FILE
from artifacts import find_artifact
from folders import read_folder
from github_api import Failed, parse_commit, read_file
from labels import parse_labels
from provenance import require_commit, require_past
from pull_requests import parse_queued
from statuses import VERDICTS, State
from surroundings import append_to

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.text import one_line
from pytest_ldos.cli.say import metric_names
from pytest_ldos.judge.baseline.accepted import Accepted, digest_difference, select_accepted
from pytest_ldos.judge.baseline.store import BaselineStores
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import GateResult
from pytest_ldos.judge.gate.reasons import AcceptedChange
from pytest_ldos.judge.gate.verdict import Tone, Verdict, worst
from pytest_ldos.judge.judging import Grounds, judge
from pytest_ldos.measure.trial.artifacts import decode_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.options import OPTIONS
from pytest_ldos.scenario.settings import Sources, read_toml
from pytest_ldos.show.report.json_text import read_document
from pytest_ldos.show.report.sentences import describe_accepted

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
        words: of maintainers on this commit, as `accepted.Words` has them.
        changes: that they accepted before.
    """

    commit: str
    base: str
    scenarios: frozenset[str]
    project: Path
    words: Sequence[Mapping[str, Any]] = ()
    changes: tuple[Accepted, ...] = ()

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
        **_read_accepted(arguments.accepted, arguments.commit),
    )
    try:
        labels = parse_labels(os.environ.get("HOST_CLASSES", ""))
        used: list[Accepted] = []
        bases, hosts = {asked.base} - {""}, {}
        for label in labels:
            hosts[label] = _judge(arguments.received, label, asked, bases, used)
        if any(each.get("accepted") for each in hosts.values()):  # then the result of the machines' jobs says nothing
            for label in (each for each in labels if _has_failed_otherwise(arguments.received, each)):
                if hosts[label]["state"] is State.SUCCESS:
                    hosts[label] = {"state": State.ERROR, "text": "another test failed, or its exit status is unknown"}
    except (Failed, LdosError) as error:
        sys.stderr.write(f"judge: {one_line(str(error))}\n")
        return 2
    for label, found in hosts.items():
        sys.stdout.write(f"{label}: {found['state']}: {found['text']}\n")
    if len(bases) == 1:
        verdicts = {"commit": asked.commit, "base": bases.pop(), "hosts": hosts}
        arguments.made.mkdir(exist_ok=True)
        (arguments.made / VERDICTS).write_text(json.dumps(verdicts), "utf-8")
        _write_accepted(arguments.made / FILE, asked, used)
    return 0


def _read_accepted(file: Path | None, commit: str) -> dict[str, Any]:
    """The words on a commit, and all changes that were accepted before."""
    if file is None:
        return {}
    found = json.loads(file.read_text("utf-8"))
    changes = tuple(Accepted(**each) for each in found["changes"])
    return {"words": [each for each in found["words"] if each["commit"] == commit], "changes": changes}


def _write_accepted(file: Path, asked: Asked, used: Sequence[Accepted]) -> None:
    """Writes what is accepted now, the largest change of each metric, what was before, and what cannot be."""
    ascending = sorted(used, key=lambda each: abs(each.size))
    largest = {(each.scenario, each.stack, each.metric): each for each in ascending if each not in asked.changes}
    there = {each.metric for each in (*used, *asked.changes)}
    found = {
        "changes": [asdict(each) for each in largest.values()],
        "applied": [asdict(each) for each in asked.changes if each in used],
        "missing": [name for word in asked.words for name in word["metrics"] if name not in there],
    }
    if any(found.values()):
        file.write_text(json.dumps(found), "utf-8")
    if found["applied"]:
        append_to("GITHUB_OUTPUT", "accepted=true\n")


def _judge(received: Path, label: str, asked: Asked, bases: set[str], used: list[Accepted]) -> dict[str, Any]:
    """State and text of the machines with a label; adds the base of their trials, and accepted changes."""
    try:
        pairs = _read_pairs(received, label, asked)
        if not asked.base:
            bases |= {each.base.commit for each in pairs}
        results = _decide(pairs, asked, used)
        machines = _machines_verdict(received, label, results)
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


def _decide(pairs: Sequence[Pair], asked: Asked, used: list[Accepted]) -> list[GateResult]:
    """The result of each scenario and stack, with the settings and calibrations of the project."""
    own = metric_names(each for pair in pairs for each in (pair.head, pair.base))
    scenarios = len({pair.head.scenario for pair in pairs})  # each stack was measured by a pytest run of its own
    policy = Policy.configured(asked.sources.toml.gate, scenarios=scenarios, own=own)
    stores = BaselineStores(
        repository=asked.project / asked.sources.value("baselines"),
        local=asked.project / ".none",
        repository_gates=True,
        project=asked.project,
    )
    results = []
    for pair in pairs:
        grounds = Grounds.given(pair.head, pair.base, Path(records.BASE), stores=stores, policy=policy, label="base")
        there = select_accepted(asked.changes, asked.project, pair.head, pair.base)
        grounds = grounds.accepting({**there, **grounds.policy.accepted})
        found = judge(pair.head, grounds).result
        more = {each.metric: each for each in _accept_more(found, pair, asked)} if asked.words else {}
        if more:
            found = judge(pair.head, grounds.accepting({**grounds.policy.accepted, **more})).result
        used += [*more.values(), *(each.accepted for each in found.reasons if isinstance(each, AcceptedChange))]
        results.append(found)
    return results


def _accept_more(result: GateResult, pair: Pair, asked: Asked) -> Iterator[Accepted]:
    """The changes of a pair that a word on its commit names, with their sizes; one word accepts a metric once."""
    used = {(each.scenario, each.stack, each.metric, each.at) for each in asked.changes}
    difference = digest_difference(asked.project, pair.base.commit, pair.head.commit)
    of = {"scenario": pair.head.scenario, "stack": pair.head.stack_kind, "difference": difference}
    between = {"commit": pair.head.commit, "base": pair.base.commit}
    for word in asked.words if difference else ():
        words = {name: word[name] for name in ("reason", "by", "at")}
        for metric in (each for each in word["metrics"] if each in result.acceptable):
            if (pair.head.scenario, pair.head.stack_kind, metric, word["at"]) not in used:
                yield Accepted(metric=metric, size=result.acceptable[metric], **words, **of, **between)


def _machines_verdict(received: Path, label: str, results: Sequence[GateResult]) -> Verdict:
    """The machine's own verdict; it does not know what was accepted on the pull request.

    Raises:
        Failed: it says nothing.
        LdosError: it cannot be read.
    """
    folder = find_artifact(received, "result", label)
    file = None if folder is None else folder / "result.json"
    if file is None or file.is_symlink() or not file.is_file():
        raise Failed(f"{label} left no result")
    document = read_document(file)
    if document.verdict is None:
        raise Failed(f"{label} has judged nothing")
    red = {each.scenario for each in document.sections if each.verdict is Verdict.REGRESSED}
    accepted = {each.scenario for each in results if each.verdict is Verdict.ACCEPTED}
    is_accepted = document.verdict is Verdict.REGRESSED and red and red <= accepted
    return Verdict.ACCEPTED if is_accepted else document.verdict


def _has_failed_otherwise(received: Path, label: str) -> bool:
    """True unless the machine's exit status says that at most a regression failed; it is 1 if another test did, too."""
    folder = find_artifact(received, "result", label)
    file = None if folder is None else folder / "exit-status"
    return file is None or not file.is_file() or read_file(file, 10).strip() not in {"0", "10"}


def _word(results: Sequence[GateResult], machines: Verdict, *, is_strict: bool) -> dict[str, Any]:
    own = worst(each.verdict for each in results)
    decided = worst([own, machines])
    if decided.tone is Tone.DOUBT and not is_strict:
        return {"state": State.SUCCESS, "text": decided.word}
    if decided is Verdict.ACCEPTED and (text := _say_accepted(results)):
        return {"state": State.SUCCESS, "text": text, "accepted": True}
    names = {each.scenario for each in results if each.verdict is decided}
    by_machine = "" if decided is own else ", says the machine"
    of = f": {', '.join(sorted(names))}" if names and decided is not Verdict.PASSED else ""
    text = f"{decided.word}{of}{by_machine}{_unjudged(results)}"
    return {"state": _STATES.get(decided, State.ERROR), "text": text}


def _say_accepted(results: Sequence[GateResult]) -> str:
    """The accepted changes: ``accepted: T1 up to +12.3 % (maintainer, checks twice)``."""
    found = [each for result in results for each in result.reasons if isinstance(each, AcceptedChange)]
    return one_line("; ".join(dict.fromkeys(describe_accepted(each.accepted) for each in found)))[:400]


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
    parser.add_argument("--accepted", type=Path, help="what maintainers accepted")
    return parser.parse_args()


def _commit_or_none(text: str) -> str:
    return parse_commit(text) if text else ""


if __name__ == "__main__":
    sys.exit(main())
