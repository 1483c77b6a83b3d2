"""Availability of perf and strace, checked once because perf takes a second to answer."""

from __future__ import annotations

from functools import cache

import pytest

from pytest_ldos.record.perf import perf_available
from pytest_ldos.record.strace import strace_available

perf_here = cache(perf_available)
_REASON = "; ".join(each.reason for each in (perf_here(), strace_available()) if not each.ok)
needs_watchers = pytest.mark.skipif(bool(_REASON), reason=_REASON or "all can watch")
