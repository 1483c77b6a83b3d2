"""Process exit codes beyond pytest's own, in one place.

pytest's codes keep their meaning (0 passed … 5 nothing collected). The command line
uses the same numbers, and `USAGE` for a call it does not understand.
"""

from __future__ import annotations

from typing import Final

USAGE: Final = 2
REGRESSED: Final = 10
INVALID: Final = 11
INCONCLUSIVE: Final = 12
