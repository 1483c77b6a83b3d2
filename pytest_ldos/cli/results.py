"""``ldos report | compare | join | comment | annotate``: show, compare and publish results.

Results may come from other machines; each is validated completely before it is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.text import Rendered, counted, one_line
from pytest_ldos.campaign.order import Role
from pytest_ldos.cli.paths import by_scenario, find_trials, is_strict, load_run, metric_names, sources_here, stores_here
from pytest_ldos.cli.say import FormatOption, OutputOption, choose_format, emit, emit_document, emit_text
from pytest_ldos.judge.baseline.lookup import Found
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.verdict import Verdict, exit_code, worst
from pytest_ldos.judge.judging import Grounds, Judged, judge, judge_only
from pytest_ldos.judge.kept import Judgement, read_judgement
from pytest_ldos.measure.trial.artifacts import TRIALS_FILE, ScenarioFolder, read_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.show.page.model import Link
from pytest_ldos.show.report import markdown, workflow_commands
from pytest_ldos.show.report.compose import compose, compose_infra, compose_section, without_verdict
from pytest_ldos.show.report.document import Section
from pytest_ldos.show.report.formats import HostReport, name_reports
from pytest_ldos.show.report.json_text import read_document

_JUDGED_NOW: Final = "judged now, by the present baseline: the run saved no verdict"


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
    files = find_trials(run)
    sets = [read_trials(file) for file in files]
    policy = Policy.configured(sources_here().toml.gate, scenarios=len(sets), own=metric_names(sets))
    sections = [_section(file, trials, policy) for file, trials in zip(files, sets, strict=True)]
    emit_document(compose(sections), chosen, output)


def _section(file: Path, trials: TrialSet, policy: Policy) -> Section:
    folder = ScenarioFolder(file.parent)
    kept = read_judgement(folder) if file.name == TRIALS_FILE else None
    if kept is not None:
        judged = judge(trials, kept.grounds)
        return compose_section(judged, notes=(*kept.notes, *_describe_difference(kept, judged)))
    base = _interleaved_with(folder, trials)
    if base is not None:
        place, label = folder.base.trials_file, Role.BASE.value
        grounds = Grounds.given(trials, base, place, stores=stores_here(), policy=policy, label=label)
    else:
        grounds = Grounds.stored(trials, stores_here(), policy)
    judged = judge(trials, grounds)
    if isinstance(grounds.base, Found) and grounds.base.trials.trials == trials.trials:
        notes = (f"is the baseline: {grounds.base.file}",)
        return without_verdict(compose_section(judge_only(trials, policy), notes=notes))
    return compose_section(judged, notes=(_JUDGED_NOW,))


def _interleaved_with(folder: ScenarioFolder, head: TrialSet) -> TrialSet | None:
    """The interleaved base of trials; ``None`` if there is none."""
    place = folder.base.trials_file
    if not head.session or not place.exists():
        return None
    base = read_trials(place)
    return base if base.is_interleaved_with(head) else None


def _describe_difference(kept: Judgement, judged: Judged) -> Iterator[str]:
    """A note if this version of pytest-ldos reaches another verdict than the original one."""
    if judged.result.verdict is not kept.verdict:
        yield f"pytest-ldos {kept.made_by} judged these trials as {kept.verdict.word}"


Pair = tuple[TrialSet, TrialSet]
"""Head and base of one scenario."""


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
    bases, heads = by_scenario(load_run(base)), by_scenario(load_run(head))
    common = [name for name in heads if name in bases]
    if not common:
        raise ConfigurationError(
            f"{base} and {head} have no scenario in common",
            remedy=f"the first has {', '.join(bases)}, the second {', '.join(heads)}",
        )
    sections, verdict = compare_sets({name: (heads[name], bases[name]) for name in common}, Path(base))
    emit_document(compose(sections), chosen, output)
    raise typer.Exit(exit_code(verdict, strict=is_strict()))


def compare_sets(pairs: Mapping[str, Pair], base: Path) -> tuple[list[Section], Verdict]:
    """Judges saved trials; returns a section for each scenario and the worst verdict.

    Args:
        pairs: head's and base's, by scenario.
        base: location of the latter.
    """
    own = metric_names(each for pair in pairs.values() for each in pair)
    policy = Policy.configured(sources_here().toml.gate, scenarios=len(pairs), own=own)
    scenarios = counted(len(pairs), "scenario")
    note = f"judged again with the present settings: alpha {policy.alpha:g} divided among {scenarios}"
    stores = stores_here()
    found = [
        judge(head, Grounds.given(head, other, base, stores=stores, policy=policy, label="base"))
        for head, other in pairs.values()
    ]
    sections = [compose_section(each, notes=(note,)) for each in found]
    return sections, worst(each.result.verdict for each in found)


_EVERY_SCENARIO: Final = "every scenario"
_NO_RESULT: Final = "its measurement ended without a result: see the job's log"


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
    document = compose([section for each in results for section in _sections(each)])
    if not output:
        emit_document(document, choose_format(None, None), None)
    for file in output or ():
        emit_document(document, choose_format(None, file), file)


def _sections(given: str) -> Iterator[Section]:
    stack, sign, file = given.partition("=")
    if not (stack and sign and file):
        raise ConfigurationError(f"{given!r} names no stack with its result", remedy="as in ros2=results/result.json")
    if Path(file).exists():
        yield from read_document(Path(file)).sections
    else:
        yield compose_infra(_EVERY_SCENARIO, [_NO_RESULT], stack=stack)


_FOR_ONE: Final = "Several machines: CLASS=URL, once for each host class."

ResultArguments = Annotated[
    list[Path],
    typer.Argument(metavar="RESULT…", help="Reports in JSON, as --ldos-report RESULT.json writes them; one a machine."),
]
PageUrls = Annotated[
    list[str] | None,
    typer.Option("--page-url", metavar="URL", help=f"Where the report's page can be downloaded. {_FOR_ONE}"),
]
TraceUrls = Annotated[
    list[str] | None,
    typer.Option("--trace-url", metavar="URL", help=f"Where traces for Perfetto can be downloaded. {_FOR_ONE}"),
]
RunUrls = Annotated[
    list[str] | None,
    typer.Option("--run-url", metavar="URL", help=f"The page of the run that measured. {_FOR_ONE}"),
]


def comment(
    results: ResultArguments,
    page_url: PageUrls = None,
    trace_url: TraceUrls = None,
    run_url: RunUrls = None,
    output: Annotated[Path | None, typer.Option("--output", help="File to write instead of printing.")] = None,
) -> None:
    """Write results as one comment for a pull request.

    In Markdown, the worst verdict first; also suitable as a job summary.

    Exit code: 0 even if something regressed; 2 if a file is not a report.
    """
    reports = _read_all(results)
    given = (("full report", page_url or ()), ("traces, for Perfetto", trace_url or ()), ("the run", run_url or ()))
    links = {owner: tuple(_links(given, owner)) for owner in ("", *(each.host_class for each in reports))}
    _require_owners(given, reports)
    emit_text(lambda: _render(reports, links), output)


def annotate(results: ResultArguments) -> None:
    """Print results as annotations of a GitHub workflow.

    They are placed on the tests of scenarios that need attention.

    Exit code: 0 even if something regressed; 2 if a file is not a report.
    """
    reports = _read_all(results)
    text = (
        workflow_commands.render(reports[0].document)
        if len(reports) == 1
        else workflow_commands.render_several(reports)
    )
    emit(text)


def _read_all(results: Sequence[Path]) -> tuple[HostReport, ...]:
    return name_reports([read_document(file) for file in results], [str(file) for file in results])


def _render(reports: Sequence[HostReport], links: Mapping[str, tuple[Link, ...]]) -> Rendered:
    if len(reports) > 1:
        links_of = {each.name: links[each.host_class] for each in reports if each.host_class}
        return markdown.render_several(reports, links=links[""], links_of=links_of)
    (only,) = reports
    own = links[only.host_class] if only.host_class else ()
    return markdown.render(only.document, links=(*own, *links[""]))


def _links(given: Iterable[tuple[str, Sequence[str]]], owner: str) -> Iterator[Link]:
    """Links of a host class, or those common to all if it is empty, in order of use."""
    for title, urls in given:
        found = (url for each, url in map(_split, urls) if each == owner and url)
        yield from (Link(title, url) for url in found)


def _require_owners(given: Iterable[tuple[str, Sequence[str]]], reports: Sequence[HostReport]) -> None:
    known = [one_line(each.host_class) for each in reports if each.host_class]
    named = (owner for _, urls in given for owner, _ in map(_split, urls) if owner)
    for owner in named:
        if owner not in {each.host_class for each in reports}:
            raise ConfigurationError(
                f"no result is of host class {owner!r}",
                remedy=f"name one of these: {', '.join(known)}" if known else "give the address without a host class",
            )


def _split(given: str) -> tuple[str, str]:
    """Host class and address of ``CLASS=URL``; an address alone, which may contain ``=``, has no class."""
    before, sign, after = given.partition("=")
    is_bare = not sign or ":" in before or "/" in before
    return ("", given) if is_bare else (before, after)
