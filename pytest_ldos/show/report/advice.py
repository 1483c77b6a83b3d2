"""Advice on a verdict: one or two sentences that can be acted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report.document import MetricReport, PathReport

_RECORD: Final = "run again with --ldos-update-baseline"
_MEND: Final = "mend what the reasons name (ldos doctor looks at this machine), then measure again"

_GENERAL: Final = {
    Verdict.REGRESSED: f"if the change is meant, record it: {_RECORD}",
    Verdict.INVALID: _MEND,
    Verdict.INFRA: _MEND,
    Verdict.NO_BASELINE: f"measure again to compare; where nothing was recorded yet (a strict run), {_RECORD}",
    Verdict.NOT_COMPARABLE: f"record a baseline of what runs here: {_RECORD}",
}
_INTERLEAVE: Final = "measure both versions interleaved, which takes out what changed in between: --ldos-base=REVISION"
_CALIBRATE: Final = "let the gate learn how much equal versions differ on this host: ldos calibrate"
_QUIET: Final = (
    "see what disturbs this machine (ldos doctor), or name what must be judged: required in [tool.ldos.gate]"
)
_MORE_TRIALS: Final = "let the run add trials while it is undecided: --ldos-max-trials"
_MORE_ROUNDS: Final = "measure more: raise the rounds, or starts, of the test's mark"
_CHANGED: Final = f"if what is measured was meant to change, record it: {_RECORD}"


@dataclass(frozen=True)
class Untried:
    """Remedies for noise that a run has not used up."""

    more_trials: bool = True
    interleaving: bool = True
    calibration: bool = True


def advise(
    verdict: Verdict,
    metrics: Sequence[MetricReport],
    paths: Sequence[PathReport],
    *,
    failures: int = 0,
    is_undecided: bool = True,
    base_needs: int = 0,
    is_study: bool = False,
    untried: Untried = Untried(),
) -> tuple[str, ...]:
    """Advice on what to do now; nothing where all is well.

    Args:
        failures: trials that failed.
        is_undecided: whether more trials would help.
        base_needs: trials with which the baseline is to be recorded again; 0 where it has enough.
        is_study: of an instrument, whose rounds its own settings tell.
        untried: what may still be asked for.
    """
    if verdict is Verdict.INCONCLUSIVE and base_needs:
        how = _MORE_ROUNDS if is_study else f"--ldos-trials={base_needs} or more"
        return (f"record the baseline again with enough trials: {_RECORD} ({how})",)
    if verdict is Verdict.INCONCLUSIVE:
        is_noisy = is_undecided or bool(_named(metrics, Verdict.INCONCLUSIVE) | _named(metrics, Verdict.NOT_JUDGED))
        return (_advise_noisy(untried, is_study=is_study) if is_noisy else _CHANGED,)
    if verdict is Verdict.REGRESSED and failures and not _worse(metrics):
        return ("see how trials failed: messages, and the stack's logs in the folder of the run",)
    where = _where_to_look(metrics, paths) if verdict is Verdict.REGRESSED else ()
    general = _GENERAL.get(verdict)
    return (*where, *(() if general is None else (general,)))


def _advise_noisy(untried: Untried, *, is_study: bool) -> str:
    """The next of what helps that has not been used up."""
    if is_study:
        return _MORE_ROUNDS
    if untried.interleaving:
        return _INTERLEAVE
    if untried.more_trials:
        return _MORE_TRIALS
    return _CALIBRATE if untried.calibration else _QUIET


def _worse(metrics: Sequence[MetricReport]) -> set[str]:
    return _named(metrics, Verdict.REGRESSED)


def _named(metrics: Sequence[MetricReport], verdict: Verdict) -> set[str]:
    return {metric.name for metric in metrics if metric.verdict is verdict}


def _where_to_look(metrics: Sequence[MetricReport], paths: Sequence[PathReport]) -> tuple[str, ...]:
    """The segment with the largest share of each path whose metric regressed."""
    worse = _worse(metrics)
    guilty = [path.segments[0] for path in paths if worse & {*path.metrics} and path.segments]
    names = dict.fromkeys(segment.name for segment in guilty if segment.is_certain and segment.share > 0)
    return tuple(f"look first at {name}" for name in names)
