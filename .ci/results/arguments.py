"""Command line of ``python3 -I .ci/results``."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any, Final

from github_api import BOT, BRANCH, REPOSITORY, parse_commit

_WORKFLOW: Final = re.compile(r"[A-Za-z0-9_-]+\.yml")


def parse_arguments() -> argparse.Namespace:
    """Arguments of a call; ends the program where they are not what they should be."""
    parser = argparse.ArgumentParser(prog="results", description="Writes to a repository what a workflow has made.")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--repository", required=True, help="OWNER/NAME", type=_OfForm(REPOSITORY))
    commands = parser.add_subparsers(dest="command", required=True)

    commands.add_parser("host-classes", help="checks LDOS_HOST_CLASSES, a JSON list of labels")

    comment = commands.add_parser("comment", parents=[common], help="posts a report on a pull request")
    comment.add_argument("file", type=Path, help="the report")
    comment.add_argument("--pull-request", type=_number, default=0, help="its number; 0: it is found")
    comment.add_argument("--commit", type=parse_commit, help="by the commit that was measured")
    comment.add_argument("--ref", default="", help="or by the branch of a merge queue")
    comment.add_argument("--author", default=BOT, help="who writes with this token")

    for name, what in (("propose", "new baselines"), ("propose-accepted", "accepted changes that were merged")):
        propose = commands.add_parser(name, parents=[common], help=f"makes a branch of {what}")
        propose.add_argument("folder", type=Path, help="what was checked")
        propose.add_argument("--commit", required=True, type=parse_commit, help="that was measured")
        propose.add_argument("--base", required=True, type=_OfForm(BRANCH), help="branch that is to get them")

    for name, sentence in (("fetch-history", "reads the history"), ("keep-history", "keeps the history")):
        commands.add_parser(name, parents=[common], help=sentence).add_argument("folder", type=Path)

    start = commands.add_parser("start", parents=[common], help="starts a workflow for a commit")
    start.add_argument("workflow", type=_OfForm(_WORKFLOW), help="its file")
    start.add_argument("--commit", required=True, type=parse_commit)
    start.add_argument("--ref", required=True, type=_OfForm(BRANCH), help="branch that the workflow is taken from")

    _add_statuses(commands, common)
    arguments = parser.parse_args()
    if arguments.command == "comment" and not arguments.pull_request and not arguments.commit:
        parser.error("--pull-request or --commit (40 digits) is needed")
    return arguments


def _add_statuses(commands: Any, common: argparse.ArgumentParser) -> None:
    """The commands that write statuses, or read them."""
    decide_ = commands.add_parser("decide", parents=[common], help="decides what becomes of the job's event")
    decide_.add_argument("--scenarios", required=True, help="default names")
    decide_.add_argument("--stack", default="", help="default stack")

    of_run = argparse.ArgumentParser(add_help=False, parents=[common])
    of_run.add_argument("--commit", required=True, type=parse_commit, help="that is measured")
    of_run.add_argument("--ref", default="", help="branch of the run, which may be a merge queue's")
    of_run.add_argument("--run", default="", help="number of the run that measures; else this one")
    commands.add_parser("begin", parents=[of_run], help="writes that a commit waits for the machine")
    commands.add_parser("reuse", parents=[of_run], help="looks whether a merge group was measured already")
    conclude_ = commands.add_parser("conclude", parents=[of_run], help="writes the verdict on a commit")
    conclude_.add_argument("made", type=Path, help="folder of what judge.py made; empty where nothing came back")
    conclude_.add_argument("--base", default="", type=_commit_or_none, help="commit that it was compared with")
    conclude_.add_argument("--pull-request", type=_number, default=0, help="its number; 0 without one")
    conclude_.add_argument("--part", default="", help="options by which less was measured than the gate measures")
    conclude_.add_argument("--result", required=True, help="of the job on the machines")

    read = commands.add_parser("read-accepted", parents=[of_run], help="reads what was accepted on a pull request")
    keep = commands.add_parser("keep-accepted", parents=[common], help="keeps the sizes of what was accepted")
    read.add_argument("file", type=Path, help="that is written")
    keep.add_argument("folder", type=Path, help="of what judge.py made")
    fetch = commands.add_parser("fetch-commits", parents=[of_run], help="fetches two commits, without their files")
    fetch.add_argument("folder", type=Path, help="checkout that gets them")
    fetch.add_argument("--base", default="", type=_commit_or_none, help="that it was compared with; else one before it")
    for each in (read, keep):
        each.add_argument("--pull-request", type=_number, default=0, help="its number; 0 without one")

    sweep_ = commands.add_parser("sweep", parents=[common], help="ends what has been pending for too long")
    sweep_.add_argument("--hours", required=True, type=float)
    sweep_.add_argument("--branch", required=True, type=_OfForm(BRANCH), help="whose newest commits are looked at, too")

    tag = commands.add_parser("move-tag", parents=[common], help="moves the major tag to a release")
    tag.add_argument("release", help="the release's own tag, v1.2.3")
    tag.add_argument("--commit", required=True, type=parse_commit, help="of the release")

    notify_ = commands.add_parser("notify", parents=[common], help="opens or closes the issue about a regression")
    notify_.add_argument("--branch", required=True, type=_OfForm(BRANCH), help="whose newest verdict counts")
    base = commands.add_parser("find-base", parents=[common], help="finds the last good commit while the issue is open")
    base.add_argument("--commit", required=True, type=parse_commit, help="that is measured")


class _OfForm:
    """Texts of a form, and no others."""

    def __init__(self, form: re.Pattern[str]) -> None:
        self._form = form

    def __call__(self, text: str) -> str:
        if self._form.fullmatch(text) is None:
            raise argparse.ArgumentTypeError(f"not of the form {self._form.pattern}")
        return text


def _number(text: str) -> int:
    """Number of a pull request; 0 for none."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError("not a number")
    return int(text)


def _commit_or_none(text: str) -> str:
    return parse_commit(text) if text else ""
