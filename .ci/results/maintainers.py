"""Users who may request measurements: the repository's variable LDOS_MAINTAINERS, a JSON list of logins.

It decides what is started. What runs on a machine of the lab, root's own list there decides again.
"""

from __future__ import annotations

import json
import re
from typing import Final

from github_api import BOT, Failed

_LOGIN: Final = re.compile(r"[A-Za-z0-9_-]{1,60}(?:\[bot\])?")


def parse_maintainers(text: str) -> frozenset[str]:
    """The logins in lower case, because GitHub ignores the case; none for an empty text.

    Raises:
        Failed: it is no such list, or names the login that every workflow has.
    """
    try:
        found = json.loads(text.strip() or "[]")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(each, str) and _LOGIN.fullmatch(each) for each in found):
        raise Failed('LDOS_MAINTAINERS is no JSON list of logins, such as ["octocat"]')
    if BOT in map(str.casefold, found):
        raise Failed(f"LDOS_MAINTAINERS names {BOT}, which every workflow can act as")
    return frozenset(map(str.casefold, found))
