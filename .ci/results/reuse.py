"""A merge group whose content was measured already: on the pull request, with an equal tree, against an equal base."""

from __future__ import annotations

import statuses
from branches import tree_of
from github_api import Api
from pull_requests import Queued, ask_pull_request
from statuses import CONTEXT, State, Status


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
