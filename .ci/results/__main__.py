"""Writes of workflow jobs to their repository, each with a token of least privilege.

They run no code but this, and read only what a job without rights has made. ``python3 -I .ci/results COMMAND …``, with
GITHUB_TOKEN and GITHUB_API_URL in the environment. Only Python's standard library is needed. The files beside this that
are programs themselves (render, check_baselines, merge_history) are for jobs without rights: they need pytest-ldos.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import accepted
import comments
import history
import notify
import proposals
import statuses
import tags
from arguments import parse_arguments
from asked import decide
from conclude import Measured, conclude
from github_api import COMMIT, Api, Failed, at, read_text
from labels import parse_labels
from maintainers import parse_maintainers
from pull_requests import parse_queued
from respond import refuse, respond
from reuse import find_measured, find_unchanged
from surroundings import append_to, read_event, run_url
from sweep import sweep

if TYPE_CHECKING:
    import argparse


def main() -> int:
    """Entry point; 1 where what was asked for could not be done."""
    arguments = parse_arguments()
    try:
        sys.stdout.write(f"{_DO[arguments.command](arguments)}\n")
    except Failed as failed:
        sys.stderr.write(f"results: {failed}\n")
        return 1
    return 0


def _api(arguments: argparse.Namespace) -> Api:
    return Api.from_environment(arguments.repository)


def _host_classes(arguments: argparse.Namespace) -> str:
    """Prints the values of a workflow's matrix; needs no token."""
    found = json.dumps(parse_labels(os.environ.get("LDOS_HOST_CLASSES", "")))
    append_to("GITHUB_OUTPUT", f"labels={found}\n")
    return found


def _comment(arguments: argparse.Namespace) -> str:
    text, api = read_text(arguments.file, comments.MARK), _api(arguments)
    number = arguments.pull_request or comments.find_pull_request(api, arguments.commit, arguments.ref)
    if number is None:
        return f"no pull request has the commit {arguments.commit}: nothing to comment on"
    return comments.post(api, number, text, author=arguments.author)


def _propose(arguments: argparse.Namespace) -> str:
    return proposals.propose(_api(arguments), arguments.folder, commit=arguments.commit, base=arguments.base)


def _fetch_history(arguments: argparse.Namespace) -> str:
    return history.fetch(_api(arguments), arguments.folder)


def _keep_history(arguments: argparse.Namespace) -> str:
    return history.keep(_api(arguments), arguments.folder)


def _start(arguments: argparse.Namespace) -> str:
    body = {"ref": arguments.ref, "inputs": {"sha": arguments.commit}}
    _api(arguments).ask("POST", f"actions/workflows/{arguments.workflow}/dispatches", body)
    return f"{arguments.workflow} was started for {arguments.commit}"


def _decide(arguments: argparse.Namespace) -> str:
    (event, payload), api = read_event(), _api(arguments)
    try:
        decision = decide(api, event, payload, _maintainers())
        return respond(api, decision, scenarios=arguments.scenarios, stack=arguments.stack)
    except Failed as failed:
        commit = at(payload, "pull_request", "head", "sha")
        if isinstance(commit, str) and COMMIT.fullmatch(commit):
            refuse(api, commit, str(failed))
        raise


def _begin(arguments: argparse.Namespace) -> str:
    queued = parse_queued(arguments.ref)
    base, url = queued.base if queued else "", run_url(arguments.run)
    state = statuses.State.PENDING
    return statuses.write(_api(arguments), arguments.commit, state, statuses.FOR_MACHINE, base=base, url=url)


def _conclude(arguments: argparse.Namespace) -> str:
    queued = parse_queued(arguments.ref)
    measured = Measured(
        commit=arguments.commit,
        base=queued.base if queued else arguments.base,
        number=arguments.pull_request,
        queued=queued,
        result=arguments.result,
        run=arguments.run,
        part=arguments.part,
    )
    return conclude(_api(arguments), measured, arguments.made)


def _read_accepted(arguments: argparse.Namespace) -> str:
    """Needs no right to write."""
    api = _api(arguments)
    number = arguments.pull_request or comments.find_pull_request(api, arguments.commit, arguments.ref) or 0
    return accepted.write(accepted.read(api, number, _maintainers()), arguments.file)


def _propose_accepted(arguments: argparse.Namespace) -> str:
    file = arguments.folder / accepted.FILE
    return accepted.propose(_api(arguments), file, commit=arguments.commit, base=arguments.base)


def _fetch_commits(arguments: argparse.Namespace) -> str:
    queued = parse_queued(arguments.ref)
    return accepted.fetch(
        _api(arguments), arguments.folder, arguments.commit, queued.base if queued else arguments.base
    )


def _keep_accepted(arguments: argparse.Namespace) -> str:
    return accepted.keep(_api(arguments), arguments.pull_request, arguments.folder / accepted.FILE, _maintainers())


def _maintainers() -> frozenset[str]:
    return parse_maintainers(os.environ.get("LDOS_MAINTAINERS", ""))


def _reuse(arguments: argparse.Namespace) -> str:
    """Needs no right to write; the job that writes looks again."""
    queued = parse_queued(arguments.ref)
    known = ""
    if queued is not None:
        api = _api(arguments)
        known = find_unchanged(api, queued.base, arguments.commit)
        if not known and find_measured(api, queued, arguments.commit):
            known = "measured on the pull request, with equal files"
    append_to("GITHUB_OUTPUT", f"measured={'true' if known else 'false'}\n")
    return known or "it has to be measured"


def _sweep(arguments: argparse.Namespace) -> str:
    return sweep(_api(arguments), branch=arguments.branch, hours=arguments.hours, now=datetime.now(UTC))


def _move_tag(arguments: argparse.Namespace) -> str:
    return tags.move(_api(arguments), arguments.release, arguments.commit)


def _notify(arguments: argparse.Namespace) -> str:
    return notify.notify(_api(arguments), arguments.branch)


def _find_base(arguments: argparse.Namespace) -> str:
    found = notify.find_base(_api(arguments), arguments.commit)
    append_to("GITHUB_OUTPUT", f"base={found}\n")
    return found or "no issue about a regression is open: it is compared with the commit before"


_DO: Final = {
    "host-classes": _host_classes,
    "comment": _comment,
    "propose": _propose,
    "fetch-history": _fetch_history,
    "keep-history": _keep_history,
    "start": _start,
    "decide": _decide,
    "begin": _begin,
    "conclude": _conclude,
    "reuse": _reuse,
    "read-accepted": _read_accepted,
    "keep-accepted": _keep_accepted,
    "fetch-commits": _fetch_commits,
    "propose-accepted": _propose_accepted,
    "sweep": _sweep,
    "move-tag": _move_tag,
    "notify": _notify,
    "find-base": _find_base,
}


if __name__ == "__main__":
    sys.exit(main())
