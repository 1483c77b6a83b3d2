"""Carries out what was decided about an event: statuses, an answer, and what the next jobs are told."""

from __future__ import annotations

import statuses
from asked import Answer, Decision, Measure, Nothing, Wait, Wanted
from github_api import Api
from statuses import FINAL, State
from surroundings import append_to, run_url

_FOR_WORD = "waits for a maintainer's word"
_FOR_MACHINE = "waits for the machine"


def respond(api: Api, decision: Decision, *, scenarios: str) -> str:
    """Carries it out; returns what was done.

    Args:
        scenarios: names, separated by blanks, where nobody asks for others.
    """
    match decision:
        case Measure(wanted):
            _tell(wanted, scenarios)
            return _hold(api, wanted, _FOR_MACHINE)
        case Wait(wanted):
            return _hold(api, wanted, _FOR_WORD)
        case Answer(number, text):
            api.ask("POST", f"issues/{number}/comments", {"body": text})
            return f"answered on pull request {number}: {text}"
        case Nothing(reason):
            return f"nothing to do: {reason}"


def _hold(api: Api, wanted: Wanted, text: str) -> str:
    """Writes that a commit waits; one that was measured against this base keeps its status until it is again."""
    if wanted.replaced:
        supersede(api, wanted.replaced, wanted.commit)
    known = statuses.read(api, wanted.commit)
    if text == _FOR_WORD and known is not None and known.state in FINAL and known.base == wanted.base:
        return f"{wanted.commit} was measured against this base already: {known.state}"
    return statuses.write(api, wanted.commit, State.PENDING, text, base=wanted.base, url=run_url())


def supersede(api: Api, commit: str, by: str) -> None:
    """Ends the waiting of a commit that its branch has left; what is being measured gets its verdict all the same."""
    known = statuses.read(api, commit)
    if known is not None and known.state == State.PENDING:
        statuses.write(api, commit, State.ERROR, f"superseded by {by}", base="", url=run_url())


def _tell(wanted: Wanted, scenarios: str) -> None:
    """Outputs of the job; no other is set where nothing is to be measured."""
    options = wanted.options
    told = {
        "commit": wanted.commit,
        "base": wanted.base,
        "pull-request": str(wanted.number),
        "scenarios": options.get("scenarios", "").replace(",", " ") or scenarios,
        "stack": options.get("stack", ""),
        "trials": options.get("trials", ""),
    }
    append_to("GITHUB_OUTPUT", "".join(f"{name}={value}\n" for name, value in told.items()))
