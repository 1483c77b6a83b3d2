"""Commits that need no measurement: those of a merge group that was measured, or without a change that counts."""

from __future__ import annotations

import sys

import statuses
from branches import list_tree, read_blob, tree_of
from github_api import Api, Failed, at, commit_in
from pull_requests import Queued, ask_pull_request
from statuses import CONTEXT, State, Status
from unchanged import Counts, Tree, compare


def find_measured(api: Api, queued: Queued, commit: str) -> dict[str, Status]:
    """The statuses of the pull request's own commit, by context, where they hold for the group's as well.

    A pull request that is up to date and alone in the queue has the same files as its group: what was measured is the
    same. Whatever else is in the queue before it makes another base.
    """
    head = ask_pull_request(api, queued.number).head
    all_known = statuses.read_all(api, head)
    known = all_known.get(CONTEXT)
    if known is None or known.state != State.SUCCESS or not known.base:
        return {}
    is_equal = tree_of(api, head) == tree_of(api, commit) and tree_of(api, known.base) == tree_of(api, queued.base)
    return all_known if is_equal else {}


def find_unchanged(api: Api, base: str, commit: str) -> str:
    """Both digests, in words, if nothing that is measured changed; else empty. In doubt, the commit is measured."""
    try:
        before, now = (_tree(api, each) for each in (base, commit))
        return compare(before, now, lambda found: read_blob(api, found))
    except (Counts, Failed) as reason:
        sys.stderr.write(f"it has to be measured: {str(reason)!a}\n")
        return ""


def _tree(api: Api, commit: str) -> Tree:
    files = [each for each in list_tree(api, commit) if at(each, "type") != "tree"]
    if not all(isinstance(at(each, name), str) for each in files for name in ("path", "mode")):
        raise Failed(f"GitHub's list of the files of {commit} holds what is no file")
    return {at(each, "path"): (at(each, "mode"), commit_in(each, "sha")) for each in files}
