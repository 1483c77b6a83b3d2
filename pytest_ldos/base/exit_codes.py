"""Process exit codes of the plugin and the command line, in addition to pytest's (0 passed … 5 nothing collected).

Of two non-zero codes, the smaller one is more severe: pytest's come first, then those of verdicts by severity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

USAGE: Final = 2
REGRESSED: Final = 10
INVALID: Final = 11
INCONCLUSIVE: Final = 12
INTERRUPTED: Final = 130
"""The shells' code for a program ended by Ctrl-C."""

MEANINGS: Final[Mapping[int, str]] = {
    USAGE: "`ldos`: a call that is not understood, or a wrong setting",
    REGRESSED: "regressed: a metric or the success rate is worse than before, or an expectation is not met",
    INVALID: "the measurement was invalid or impossible, or results could not be written",
    INCONCLUSIVE: "no verdict was possible, or none of the selected tests was judged, in a strict run; "
    "`ldos doctor --strict`: only warnings",
    INTERRUPTED: "`ldos`: a command that measures was interrupted (Ctrl-C)",
}
