"""``ldos report | compare | accept | join | comment | annotate | baseline``: show, compare, publish and keep results.

Results may come from other machines; each is validated completely before it is shown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from pytest_ldos.base.errors import ConfigurationError, refuse_unknown, require
from pytest_ldos.base.text import counted, one_line
from pytest_ldos.campaign.order import Role
from pytest_ldos.cli.main import Command, make_group
from pytest_ldos.cli.say import (
    FormatOption,
    OutputOption,
    choose_format,
    emit,
    emit_document,
    emit_fitted,
    emit_text,
    find_trials,
    load_run,
    metric_names,
    say,
    sources_here,
    stores_here,
)
from pytest_ldos.host.checkout import ask_git
from pytest_ldos.judge.baseline.accepted import SUCCESS_RATE, Accepted, append_accepted, digest_difference
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.judge.baseline.store import Found, StoredBaseline, merge_trials
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.verdict import Verdict, exit_code, worst
from pytest_ldos.judge.judging import Grounds, Judged, judge, judge_only, read_judgement
from pytest_ldos.measure.trial.artifacts import TRIALS_FILE, ScenarioFolder, read_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.show.page.model import Link
from pytest_ldos.show.report import markdown, workflow_commands
from pytest_ldos.show.report.compose import compose, compose_infra, compose_section, without_verdict
from pytest_ldos.show.report.document import Section
from pytest_ldos.show.report.history import render_baselines
from pytest_ldos.show.report.json_text import HostReport, name_reports, read_document
from pytest_ldos.show.report.sentences import describe_accepted
from pytest_ldos.show.report.terminal import render


def report(
    run: Annotated[
        str, typer.Argument(help="Run folder, scenario folder or file of trials; 'latest' by default.")
    ] = "latest",
    kind: FormatOption = None,
    output: OutputOption = None,
) -> None:
    """Show a saved run, and reproduce its verdict.

    The run contains its base, its policy and the host's calibration. If it does not, the present ones are used.
    """
    chosen = choose_format(kind, output)
    emit_document(compose([section for _, section in _judge_saved(run)]), chosen, output)


def _judge_saved(run: str) -> list[tuple[Judged, Section]]:
    sets = {file: read_trials(file) for file in find_trials(run)}
    policy = Policy.configured(sources_here().toml.gate, scenarios=len(sets), own=metric_names(sets.values()))
    return [_judge(file, trials, policy) for file, trials in sets.items()]


def _judge(file: Path, trials: TrialSet, policy: Policy) -> tuple[Judged, Section]:
    folder = ScenarioFolder(file.parent)
    kept = read_judgement(folder) if file.name == TRIALS_FILE else None
    if kept is not None:
        judged = judge(trials, kept.grounds)
        notes = [*kept.notes]
        if judged.result.verdict is not kept.verdict:
            notes.append(f"pytest-ldos {kept.made_by} judged these trials as {kept.verdict.word}")
        return judged, compose_section(judged, notes=notes, evidence=kept.evidence)
    stores, place = stores_here(), folder.base.trials_file
    base = read_trials(place) if trials.session and place.exists() else None
    if base is not None and base.is_interleaved_with(trials):
        grounds = Grounds.given(trials, base, place, stores=stores, policy=policy, label=Role.BASE.value)
    else:
        grounds = Grounds.stored(trials, stores, policy)
    judged = judge(trials, grounds)
    if isinstance(grounds.base, Found) and grounds.base.trials.trials == trials.trials:
        notes = [f"is the baseline: {grounds.base.file}"]
        return judged, without_verdict(compose_section(judge_only(trials, policy), notes=notes))
    return judged, compose_section(judged, notes=("judged now, by the present baseline: the run saved no verdict",))


def compare(
    base: Annotated[str, typer.Argument(help="Run folder, file of trials or baseline, or 'latest'.")],
    head: Annotated[str, typer.Argument(help="Likewise, to compare with BASE.")],
    kind: FormatOption = None,
    output: OutputOption = None,
) -> None:
    """Compare two saved results, scenario by scenario.

    They are judged again, with the present settings and calibration; `ldos report` reproduces the verdict of a run.

    Exit code: 0 passed, 10 regressed, 11 invalid, 12 inconclusive (in a strict run).
    """
    chosen = choose_format(kind, output)
    bases, heads = ({trials.scenario: trials for trials in load_run(each)} for each in (base, head))
    if not (common := [name for name in heads if name in bases]):
        raise ConfigurationError(
            f"{base} and {head} have no scenario in common",
            remedy=f"the first has {', '.join(bases)}, the second {', '.join(heads)}",
        )
    sections, verdict = compare_sets({name: (heads[name], bases[name]) for name in common}, Path(base))
    emit_document(compose(sections), chosen, output)
    raise typer.Exit(exit_code(verdict, strict=sources_here().is_strict(os.environ)))


def compare_sets(pairs: Mapping[str, tuple[TrialSet, TrialSet]], base: Path) -> tuple[list[Section], Verdict]:
    """Judges saved trials: head and base of each scenario; returns their sections and the worst verdict."""
    own = metric_names(each for pair in pairs.values() for each in pair)
    policy = Policy.configured(sources_here().toml.gate, scenarios=len(pairs), own=own)
    scenarios = counted(len(pairs), "scenario")
    note = f"judged again with the present settings: alpha {policy.alpha:g} divided among {scenarios}"
    stores = stores_here()
    found = [
        judge(head, Grounds.given(head, other, base, stores=stores, policy=policy, label="base"))
        for head, other in pairs.values()
    ]
    return [compose_section(each, notes=(note,)) for each in found], worst(each.result.verdict for each in found)


def accept(
    run: Annotated[str, typer.Argument(help="Run folder, scenario folder or file of trials, or 'latest'.")],
    metrics: Annotated[list[str], typer.Argument(metavar="METRIC…", help=f"Regressed metrics, or {SUCCESS_RATE}.")],
    reason: Annotated[str, typer.Option(help="Why the change is wanted.")],
) -> None:
    """Accept changes for the worse of a saved run.

    Adds them to ldos-accepted.toml, in each scenario in which they regressed; their measured sizes are the limits.
    Commit that file alone and merge it first: it is read from the version that a run is compared with.
    """
    require(bool(reason.strip()), "--reason is empty", remedy="say why the change is wanted")
    project = sources_here().root
    by = ask_git(project, "config", "user.name") or ""
    require(bool(by), "git does not know your name", remedy='git config user.name "NAME"')
    judged = [each for each, _ in _judge_saved(run)]
    found = {name for each in judged for name in each.result.acceptable}
    require(bool(found), f"{run} has no change that can be accepted", remedy="ldos report shows what is red, and why")
    refuse_unknown(metrics, found, f"change for the worse of {run} that can be accepted:")
    words = {
        "reason": one_line(reason.strip()),
        "by": one_line(by),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    changes = [
        Accepted(metric=name, size=size, **words, **_identify(each, project))
        for each in judged
        for name, size in each.result.acceptable.items()
        if name in metrics
    ]
    file = append_accepted(project, changes)
    for change in changes:
        say(f"{change.scenario}: {describe_accepted(change)}")
    say(f"commit {file} alone and merge it first: it is read from the version that a run is compared with")


def _identify(judged: Judged, project: Path) -> dict[str, str]:
    """Fields of `Accepted` that identify a comparison; refuses versions that git cannot find again."""
    head, base = judged.head, judged.base.commit if judged.base else ""
    difference = digest_difference(project, base, head.commit)
    require(
        bool(difference),
        f"git finds no difference between base {base or 'unknown'} and head {head.commit or 'unknown'}",
        remedy="measure without uncommitted changes (+); call it in a checkout that has both commits",
    )
    names = {"scenario": head.scenario, "stack": head.stack_kind, "commit": head.commit, "base": base}
    return {**names, "difference": difference}


def join(
    results: Annotated[
        list[str],
        typer.Argument(metavar="STACK=RESULT…", help="Reports in JSON; a stack whose file is missing is infra."),
    ],
    output: Annotated[
        list[Path] | None,
        typer.Option("--output", help="File to write instead of printing; can be given several times."),
    ] = None,
) -> None:
    """Join the results of several stacks into one report.

    Its verdict is the worst one.

    Exit code: 0 even if something regressed; 2 if a file is not a report.
    """
    sections: list[Section] = []
    for each in results:
        stack, _, file = each.partition("=")
        if not (stack and file):
            raise ConfigurationError(
                f"{each!r} names no stack with its result", remedy="as in ros2=results/result.json"
            )
        if Path(file).exists():
            sections += read_document(Path(file)).sections
        else:
            ended = "its measurement ended without a result: see the job's log"
            sections.append(compose_infra("every scenario", [ended], stack=stack))
    document = compose(sections)
    places: Sequence[Path | None] = output or [None]
    for place in places:
        emit_document(document, choose_format(None, place), place)


def _urls(flag: str, meaning: str) -> Any:
    return typer.Option(flag, metavar="URL", help=f"{meaning} Several machines: CLASS=URL, once for each host class.")


ResultArguments = Annotated[
    list[Path],
    typer.Argument(metavar="RESULT…", help="Reports in JSON, as --ldos-report RESULT.json writes them; one a machine."),
]


def comment(
    results: ResultArguments,
    page_url: Annotated[list[str] | None, _urls("--page-url", "Where the report's page can be downloaded.")] = None,
    trace_url: Annotated[list[str] | None, _urls("--trace-url", "Where traces for Perfetto can be downloaded.")] = None,
    run_url: Annotated[list[str] | None, _urls("--run-url", "The page of the run that measured.")] = None,
    output: OutputOption = None,
) -> None:
    """Write results as one comment for a pull request.

    In Markdown, the worst verdict first; also suitable as a job summary.

    Exit code: 0 even if something regressed; 2 if a file is not a report.
    """
    reports = _read_all(results)
    urls_of = {"full report": page_url, "traces, for Perfetto": trace_url, "the run": run_url}
    given = [(title, *_split(each)) for title, urls in urls_of.items() for each in urls or ()]
    classes = [each.host_class for each in reports if each.host_class]
    for _, owner, _ in given:
        if owner and owner not in classes:
            names = ", ".join(map(one_line, classes))
            raise ConfigurationError(
                f"no result is of host class {owner!r}",
                remedy=f"name one of these: {names}" if names else "give the address without a host class",
            )

    def links_of(owner: str) -> tuple[Link, ...]:
        return tuple(Link(title, url) for title, each, url in given if each == owner and url)

    own = {each.name: links_of(each.host_class) for each in reports if each.host_class}
    if len(reports) > 1:
        text = markdown.render_several(reports, links=links_of(""), links_of=own)
    else:
        (only,) = reports
        text = markdown.render(only.document, links=(*own.get(only.name, ()), *links_of("")))
    emit_text(text, output)


def annotate(results: ResultArguments) -> None:
    """Print results as annotations of a GitHub workflow.

    They are placed on the tests of scenarios that need attention.

    Exit code: 0 even if something regressed; 2 if a file is not a report.
    """
    reports = _read_all(results)
    if len(reports) > 1:
        emit(workflow_commands.render_several(reports))
    else:
        emit(workflow_commands.render(reports[0].document))


def _read_all(results: Sequence[Path]) -> tuple[HostReport, ...]:
    return name_reports([read_document(file) for file in results], [str(file) for file in results])


def _split(given: str) -> tuple[str, str]:
    """Host class and address of ``CLASS=URL``; an address alone, which may contain ``=``, has no class."""
    before, sign, after = given.partition("=")
    return ("", given) if not sign or ":" in before or "/" in before else (before, after)


baseline_app = make_group(help="Keep baselines: list, show, pin, promote, merge.", no_args_is_help=True)

Scenario = Annotated[str, typer.Argument(help="Scenario of the baseline, e.g. baseline or msg_load.")]
HostClass = Annotated[str, typer.Option(help="Host class, where several have such a baseline.")]
Pinned = Annotated[bool, typer.Option("--pinned", help="The pinned release instead of the rolling baseline.")]


@baseline_app.command("list", cls=Command)
def list_baselines() -> None:
    """List all baselines, of the repository and of this machine."""
    if not (stored := list(stores_here().all())):
        say("no baselines yet; the first run of a scenario records one: pytest -m baseline")
        return
    emit_fitted(render_baselines, stored)


@baseline_app.command(cls=Command)
def show(scenario: Scenario, host_class: HostClass = "", pinned: Pinned = False) -> None:
    """Show the numbers of a baseline."""
    baseline = _find(scenario, host_class, pinned=pinned)
    section = compose_section(judge_only(read_trials(baseline.file), Policy()), notes=(f"file: {baseline.file}",))
    emit_fitted(render, compose([without_verdict(section)]))


@baseline_app.command("pin", cls=Command)
def pin_baseline(scenario: Scenario, host_class: HostClass = "") -> None:
    """Pin a baseline as a release, for manual comparisons.

    Later updates of the rolling baseline do not change it.
    """
    say(f"pinned: {stores_here().pin(_find(scenario, host_class, pinned=False))}")


@baseline_app.command(cls=Command)
def promote(scenario: Scenario, host_class: HostClass = "", pinned: Pinned = False) -> None:
    """Copy a baseline of this machine into the repository."""
    say(f"promoted: {stores_here().promote(_find(scenario, host_class, pinned=pinned, local_only=True))}")


@baseline_app.command(cls=Command)
def merge(
    runs: Annotated[
        list[str], typer.Argument(help="Baselines or runs of several machines of one class: files of trials, folders.")
    ],
) -> None:
    """Record one baseline from runs of several machines.

    The machines are of one class; the baseline then includes their variation.

    Runs must be of the same commit, stack, host class and settings; each stack start remains a separate block.
    """
    by_key: dict[BaselineKey, list[TrialSet]] = {}
    for trials in (each for name in runs for each in load_run(name)):
        by_key.setdefault(BaselineKey.of(trials), []).append(trials)
    merged = [merge_trials(sets) for sets in by_key.values()]
    for trials in merged:
        starts = len({each.block for each in trials.trials})
        counts = (
            f"{counted(len(trials.trials), 'trial')} in {counted(starts, 'start')}, from {trials.fingerprint.hostname}"
        )
        say(f"baseline of '{trials.scenario}': {counts}: {stores_here().update(trials)}")


def _find(scenario: str, host_class: str, *, pinned: bool, local_only: bool = False) -> StoredBaseline:
    """The only matching baseline; refuses to choose between host classes."""
    stored = [each for each in stores_here().all() if each.key.scenario == scenario and each.is_pinned == pinned]
    found = [each for each in stored if host_class in {"", each.key.host_class} and (each.is_local or not local_only)]
    if stored and not found and host_class:
        raise ConfigurationError(
            f"host class {host_class} has no such baseline of '{scenario}'",
            remedy=f"these have: {', '.join(sorted({each.key.host_class for each in stored}))}",
        )
    if not found:
        known = sorted({each.key.scenario for each in stores_here().all()})
        raise ConfigurationError(
            f"there is no {'local ' if local_only else ''}{'pinned ' if pinned else ''}baseline of '{scenario}'",
            remedy=f"there are baselines of: {', '.join(known) or 'nothing yet'}",
        )
    classes = {each.key.host_class for each in found}
    if len(classes) > 1:
        raise ConfigurationError(
            f"several host classes have a baseline of '{scenario}'",
            remedy=f"choose one with --host-class: {', '.join(sorted(classes))}",
        )
    return found[0]
