"""Process exit codes beyond pytest's own, in one place.

pytest's codes keep their meaning (0 passed … 5 nothing collected). The command line
uses the same numbers, and `USAGE` for a call it does not understand. Of two codes that are not 0, the smaller is the
worse: pytest's own, then ours by the severity of their verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

USAGE: Final = 2
REGRESSED: Final = 10
INVALID: Final = 11
INCONCLUSIVE: Final = 12
INTERRUPTED: Final = 130
"""As shells have it for a program that Ctrl-C ended."""

MEANINGS: Final[Mapping[int, str]] = {
    USAGE: "`ldos`: a call that is not understood, or a wrong setting",
    REGRESSED: "regressed: a metric or the success rate is worse than before, or an expectation is not met",
    INVALID: "nothing can be said of what was measured, it could not be measured, or results could not be written",
    INCONCLUSIVE: "no verdict was possible, or none of the selected tests was judged, in a strict run; "
    "`ldos doctor --strict`: only warnings",
    INTERRUPTED: "`ldos`: a command that measures was interrupted (Ctrl-C)",
}
