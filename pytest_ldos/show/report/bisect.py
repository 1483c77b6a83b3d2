"""A search for the commit that caused a regression, as page, sentences and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, assert_never

from pytest_ldos.base.text import Rendered, counted, percent
from pytest_ldos.campaign.commit_rounds import Commit
from pytest_ldos.campaign.commit_search import CHANGE_CONFIDENCE, CommitResult, Finding, Visited
from pytest_ldos.show.page.formats import Format, finite, render, to_json
from pytest_ldos.show.page.model import ABSENT, Bullets, Column, Kind, Page, Section, Table, Tone, numbers, words
from pytest_ldos.show.report.compose import report_paths
from pytest_ldos.show.report.sentences import describe_accepted
from pytest_ldos.show.report.words import describe_path

_OLDER = "name an older GOOD, in which it is good"


def answer(result: CommitResult) -> str:
    return f"{_found(result)}; {result.trials} trials in {counted(result.starts, 'start')} of the stack"


def _found(result: CommitResult) -> str:
    good, bad, metric = f"GOOD {result.good.name}", f"BAD {result.bad.name}", result.metric.name
    match result.finding:
        case Finding.FOUND | Finding.NARROWED:
            first, last = result.suspects[0], result.suspects[-1]
            several = f"one of {len(result.suspects)} commits, from {name_of(first)} to {name_of(last)}"
            which = name_of(first) if result.finding is Finding.FOUND else several
            found = f"{metric} became worse with {which} ({_sure(result)}){_change_at(result, last)}"
        case Finding.GOOD_FAILS:
            found = f"no search: {good} is bad already: fewer than half of its trials succeed; {_OLDER}"
        case Finding.NOT_WORSE:
            found = (
                f"no search: in {metric}, {bad} is not worse than {good} but better{_change_at(result, result.bad)}; "
                f"GOOD may be bad already: {_OLDER}"
            )
        case Finding.UNKNOWN:
            pairs = counted(sum(each.pairs for each in result.visited), "pair")
            found = (
                f"no search: {bad} was not shown to be worse than {good} in {metric} by {pairs} of trials"
                f"{_change_at(result, result.bad)}; GOOD may be bad already ({_OLDER}), or the change is too small for "
                "this noise"
            )
        case Finding.UNMEASURED:
            found = f"no search: {bad} could not be measured"
        case _:
            assert_never(result.finding)
    return found


def name_of(commit: Commit) -> str:
    return f"{commit.name} of {commit.date}, “{commit.subject}”"


def _sure(result: CommitResult) -> str:
    return f"{100 * result.plan.confidence:g} % confidence"


def _change_at(result: CommitResult, commit: Commit) -> str:
    found = next((each for each in result.visited if each.commit == commit), None)
    change = "" if found is None else _change(found)
    return f": {change} from GOOD" if change else ""


def _change(visited: Visited) -> str:
    """``+15.2 % [+9.1, +20.3]``."""
    if visited.change is None:
        return ""
    bounds = (_bound(visited.low), _bound(visited.high))
    return f"{percent(visited.change, signed=True)} [{', '.join(bounds)}]"


def _bound(bound: float) -> str:
    if math.isinf(bound):
        return "+∞" if bound > 0 else "-∞"
    return f"{100 * bound:+.1f}"


def remarks(result: CommitResult) -> Iterator[str]:
    if result.accepted is not None:
        yield describe_accepted(result.accepted)
    if result.why:
        yield result.why
    if explained := explanation_of(result):
        yield explained
    for commit, reason in result.skipped:
        yield f"skipped, because it could not be measured: {name_of(commit)}: {reason}"
    if result.finding is Finding.FOUND and result.suspects[0].is_merge:
        name = result.suspects[0].name
        yield f"it is a merge; the commits of its branch: ldos bisect {name}^1 {name}^2"


def explanation_of(result: CommitResult) -> str:
    """Sentence on the segments with the change; empty if unknown."""
    if result.explanation is None:
        return ""
    (path,) = report_paths({result.explanation.path: result.explanation}, [result.metric])
    return f"from GOOD to {result.suspects[-1].name}, {describe_path(path, result.metric.name)}"


def commit_table(result: CommitResult) -> Table:
    tests = numbers(f"{result.metric.name} from GOOD", "worse than GOOD", "better than BAD")
    columns = (*words("commit"), *tests, *words("result"), Column("subject", Kind.PROSE))
    rows = []
    for each in result.visited:
        pairs = (ABSENT if count is None else f"{count} of {each.pairs}" for count in (each.worse, each.better))
        subject = f"{each.commit.date} {each.commit.subject}"
        rows.append((each.commit.name, _change(each) or ABSENT, *pairs, each.standing.value, subject))
    return Table(columns=columns, rows=tuple(rows))


def legend(result: CommitResult) -> Iterator[str]:
    yield (
        f"{result.metric.name} from GOOD: median of the ratios of paired trials, with its "
        f"{100 * CHANGE_CONFIDENCE:g} % interval (no decision depends on it)"
    )
    yield (
        "worse than GOOD, better than BAD: of trials paired by seed in one round; a commit breaks if the first "
        "is significant, and holds if the second is"
    )
    yield (
        f"{_sure(result)}: up to {result.plan.most_levels} commits are decided, each wrongly with probability "
        f"{100 * result.plan.test.error:.2g} % at most, at any number of looks, if a single commit caused the change"
    )


def to_plain(result: CommitResult) -> dict[str, Any]:
    template = result.template
    return {
        "kind": "pytest-ldos bisect",
        "schema": 1,
        "answer": answer(result),
        "finding": result.finding.value,
        "metric": result.metric.name,
        "scenario": None if template is None else template.scenario,
        "stack": None if template is None else template.stack,
        "good": asdict(result.good),
        "bad": asdict(result.bad),
        "commits": [asdict(each) for each in result.suspects],
        "confidence": result.plan.confidence,
        "explanation": explanation_of(result) or None,
        "remarks": list(remarks(result)),
        "measured": [{**asdict(each), "low": finite(each.low), "high": finite(each.high)} for each in result.visited],
        "skipped": [{"commit": asdict(commit), "reason": reason} for commit, reason in result.skipped],
        "trials": result.trials,
        "starts": result.starts,
    }


def render_bisect_as(result: CommitResult, kind: Format, *, width: int = 100, color: bool = False) -> Rendered:
    """The result in a format, which may be `Unavailable`; width and colour apply to a terminal only."""
    if kind is Format.JSON:
        return to_json(to_plain(result))
    return render(compose_page(result), kind, width=width, color=color)


def compose_page(result: CommitResult) -> Page:
    suspects = tuple(map(name_of, result.suspects)) if len(result.suspects) > 1 else ()
    ran = result.template
    setting = () if ran is None else (ran.scenario, ran.stack, ran.recorder)
    return Page(
        title="ldos: bisect",
        setting=(*setting, f"{result.good.name}..{result.bad.name}"),
        answer=answer(result),
        blocks=(
            Bullets(tuple(remarks(result))),
            Section("One of these commits", (Bullets(suspects),)),
            Section("Measured commits", (commit_table(result),)),
            Section("How to read this", (Bullets(tuple(legend(result)), Tone.QUIET),)),
        ),
    )
