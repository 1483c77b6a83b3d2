"""Process exit codes of the plugin and the command line, in addition to pytest's (0 passed … 5 nothing collected).

Of two non-zero codes, the smaller one is more severe: pytest's come first, then those of verdicts by severity.
"""

from __future__ import annotations

from typing import Final

USAGE: Final = 2
ALARM: Final = 9
REGRESSED: Final = 10
INVALID: Final = 11
INCONCLUSIVE: Final = 12
INTERRUPTED: Final = 130
"""The shells' code for a program ended by Ctrl-C."""
