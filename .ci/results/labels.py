"""Labels of the lab's machines: one for each class of host, or for each machine that is to measure."""

from __future__ import annotations

import json
import re
from typing import Final

from github_api import Failed

FORM: Final = re.compile(r"ldos-lab(?:-[a-z0-9]+)*")
"""Valid labels, which are part of names of files and artifacts, and of addresses."""

_DEFAULT: Final = '["ldos-lab"]'
_LONGEST: Final = 64
_MOST: Final = 16


def parse_labels(text: str) -> tuple[str, ...]:
    """The labels in a JSON list; without any text, that of a lab of one class.

    Raises:
        Failed: it is no such list.
    """
    try:
        found = json.loads(text.strip() or _DEFAULT)
    except (ValueError, RecursionError):
        raise Failed(f"the host classes are no JSON; a list is meant, such as {_DEFAULT}") from None
    if not isinstance(found, list) or not 0 < len(found) <= _MOST:
        raise Failed(f"the host classes are no list of 1 to {_MOST} labels, such as {_DEFAULT}")
    for label in found:
        if not isinstance(label, str) or len(label) > _LONGEST or FORM.fullmatch(label) is None:
            raise Failed(f"{ascii(label)[:100]} is no label of a host class; these are ldos-lab or ldos-lab-NAME")
    if len({*found}) < len(found):
        raise Failed("a host class is named twice")
    return tuple(found)
