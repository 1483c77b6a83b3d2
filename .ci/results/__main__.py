"""What jobs of workflows write to their repository: as little as can be, each with a token for that alone.

They run no code but this, and read only what a job without rights has made. ``python3 -I .ci/results COMMAND …``, with
GITHUB_TOKEN and GITHUB_API_URL in the environment. Only Python's standard library is needed. The files beside this that
are programs themselves (render, check_baselines, merge_history) are for jobs without rights: they need pytest-ldos.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path
from typing import Final

import comments
import history
import proposals
from github_api import BRANCH, REPOSITORY, Api, Failed, parse_commit, read_text
from labels import parse_labels
from surroundings import append_to

_WORKFLOW: Final = re.compile(r"[A-Za-z0-9_-]+\.yml")


def main() -> int:
    """Entry point; 1 where what was asked for could not be done."""
    arguments = _parse_arguments()
    try:
        sys.stdout.write(f"{_DO[arguments.command](arguments)}\n")
    except Failed as failed:
        sys.stderr.write(f"results: {failed}\n")
        return 1
    return 0


def _api(arguments: argparse.Namespace) -> Api:
    return Api.from_environment(arguments.repository)


def _host_classes(arguments: argparse.Namespace) -> str:
    """What a workflow's matrix is made of; needs no token."""
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


_DO: Final = {
    "host-classes": _host_classes,
    "comment": _comment,
    "propose": _propose,
    "fetch-history": _fetch_history,
    "keep-history": _keep_history,
    "start": _start,
}


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="results", description="Writes to a repository what a workflow has made.")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--repository", required=True, help="OWNER/NAME", type=_OfForm(REPOSITORY))
    commands = parser.add_subparsers(dest="command", required=True)

    commands.add_parser("host-classes", help="checks LDOS_HOST_CLASSES, a JSON list of labels")

    comment = commands.add_parser("comment", parents=[common], help="posts a report on a pull request")
    comment.add_argument("file", type=Path, help="the report")
    comment.add_argument("--pull-request", type=_positive, default=0, help="its number; else it is found")
    comment.add_argument("--commit", type=parse_commit, help="by the commit that was measured")
    comment.add_argument("--ref", default="", help="or by the branch of a merge queue")
    comment.add_argument("--author", default="github-actions[bot]", help="who writes with this token")

    propose = commands.add_parser("propose", parents=[common], help="makes a branch of new baselines")
    propose.add_argument("folder", type=Path, help="what was checked")
    propose.add_argument("--commit", required=True, type=parse_commit, help="that was measured")
    propose.add_argument("--base", required=True, type=_OfForm(BRANCH), help="branch that is to get them")

    for name, sentence in (("fetch-history", "reads the history"), ("keep-history", "keeps the history")):
        commands.add_parser(name, parents=[common], help=sentence).add_argument("folder", type=Path)

    start = commands.add_parser("start", parents=[common], help="starts a workflow for a commit")
    start.add_argument("workflow", type=_OfForm(_WORKFLOW), help="its file")
    start.add_argument("--commit", required=True, type=parse_commit)
    start.add_argument("--ref", required=True, type=_OfForm(BRANCH), help="branch that the workflow is taken from")

    arguments = parser.parse_args()
    if arguments.command == "comment" and not arguments.pull_request and not arguments.commit:
        parser.error("--pull-request or --commit (40 digits) is needed")
    return arguments


class _OfForm:
    """Texts of a form, and no others."""

    def __init__(self, form: re.Pattern[str]) -> None:
        self._form = form

    def __call__(self, text: str) -> str:
        if self._form.fullmatch(text) is None:
            raise argparse.ArgumentTypeError(f"not of the form {self._form.pattern}")
        return text


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError("not a number above 0")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
