"""Carries out the decision about an event: statuses, an answer, and outputs for the next jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import statuses
from asked import Accept, Answer, Decision, Measure, Nothing, Unchanged, Wait, Wanted
from github_api import Api, Failed
from pull_requests import contradiction, open_ones
from statuses import CONTEXT, FINAL, FOR_MACHINE, State, Status
from surroundings import append_to, run_url

_FOR_WORD: Final = "waits for a maintainer's word: /ldos COMMIT"
_TRIALS: Final = 10
"""Default number of trials of each scenario."""


def respond(api: Api, decision: Decision, *, scenarios: str, stack: str) -> str:
    """Carries it out; returns what was done.

    Args:
        scenarios, stack: what is measured by default; names of scenarios are separated by blanks.
    """
    match decision:
        case Measure(wanted):
            _tell(wanted, scenarios, stack)
            return _hold(api, wanted, FOR_MACHINE)
        case Wait(wanted):
            return _hold(api, wanted, _FOR_WORD)
        case Unchanged(wanted, text):
            return _hold(api, wanted, text, State.SUCCESS)
        case Accept(wanted, run):
            _write_outputs(
                {"red": wanted.commit, "red-base": wanted.base, "run": run, "pull-request": str(wanted.number)}
            )
            return f"{wanted.commit} is judged again, as run {run} measured it"
        case Answer(number, text):
            api.ask("POST", f"issues/{number}/comments", {"body": text})
            return f"answered on pull request {number}: {text}"
        case Nothing(reason):
            return f"nothing to do: {reason}"


def refuse(api: Api, commit: str, reason: str) -> str:
    """Writes that nothing could be decided about a commit."""
    return statuses.write(api, commit, State.ERROR, reason, base="", url=run_url())


def _hold(api: Api, wanted: Wanted, text: str, state: State = State.PENDING) -> str:
    """Writes that a commit waits or needs no measurement, in every context that it has."""
    if wanted.replaced:
        _supersede(api, wanted)
    known = statuses.read_all(api, wanted.commit)
    if reason := contradiction(api, wanted.commit, wanted.base):
        state, text = State.ERROR, reason
    elif text != FOR_MACHINE and _stands(known.get(CONTEXT), wanted.base):
        return f"{wanted.commit} is measured against this base already"
    printed = (
        statuses.write(api, wanted.commit, state, text, base=wanted.base, url=run_url(), context=each)
        for each in dict.fromkeys([CONTEXT, *known])
    )
    return "\n".join(printed)


def _stands(known: Status | None, base: str) -> bool:
    """True for a verdict on a commit and this base, or where the machine is about to give one."""
    if known is None or known.base != base:
        return False
    return known.state in FINAL or (known.state == State.PENDING and known.text == FOR_MACHINE)


def _supersede(api: Api, wanted: Wanted) -> None:
    """Ends the waiting of a commit that its branch has left; what is being measured gets its verdict all the same.

    It stays where another pull request has it, and where no pull request's status is on it.
    """
    if any(open_ones(api, wanted.replaced)):
        return
    for context, known in statuses.read_all(api, wanted.replaced).items():
        if known.state == State.PENDING and known.base:
            text = f"superseded by {wanted.commit}"
            statuses.write(api, wanted.replaced, State.ERROR, text, base="", url=run_url(), context=context)


def _tell(wanted: Wanted, scenarios: str, stack: str) -> None:
    """Outputs of the job; no other is set where nothing is to be measured."""
    options = wanted.options
    outputs = {
        "commit": wanted.commit,
        "base": wanted.base,
        "pull-request": str(wanted.number),
        "scenarios": options.get("scenarios", "").replace(",", " ") or scenarios,
        "stack": options.get("stack", ""),
        "trials": options.get("trials", ""),
        "part": _part(options, scenarios, stack),
    }
    if any(not value.isprintable() for value in outputs.values()):
        raise Failed("what was asked for is no plain text")
    _write_outputs(outputs)


def _write_outputs(outputs: Mapping[str, str]) -> None:
    append_to("GITHUB_OUTPUT", "".join(f"{name}={value}\n" for name, value in outputs.items()))


def _part(options: Mapping[str, str], scenarios: str, stack: str) -> str:
    """The options by which less is measured than the gate measures; empty where it is not less."""
    names = options.get("scenarios", "")
    less = {
        "scenarios": bool(names) and not {*scenarios.split()} <= {*names.split(",")},
        "stack": options.get("stack", stack) not in (stack, "both"),
        "trials": int(options.get("trials", _TRIALS)) < _TRIALS,
    }
    return " ".join(f"{name}={options[name]}" for name, is_less in less.items() if is_less)
