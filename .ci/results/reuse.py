"""A merge group whose content was measured already: on the pull request, with an equal tree, against an equal base."""

from __future__ import annotations

import statuses
from branches import tree_of
from github_api import Api
from pull_requests import Queued, ask_pull_request
from statuses import State, Status


def find_measured(api: Api, queued: Queued, commit: str) -> Status | None:
    """The status of the pull request's own commit where it holds for the group's as well; ``None`` where it does not.

    A pull request that is up to date and alone in the queue has the same files as its group: what was measured is the
    same. Whatever else is in the queue before it makes another base.
    """
    head = ask_pull_request(api, queued.number).head
    known = statuses.read(api, head)
    if known is None or known.state != State.SUCCESS or not known.base:
        return None
    is_equal = tree_of(api, head) == tree_of(api, commit) and tree_of(api, known.base) == tree_of(api, queued.base)
    return known if is_equal else None
