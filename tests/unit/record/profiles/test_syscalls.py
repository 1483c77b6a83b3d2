"""The table of ``strace -c``."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import ProfilingFailed
from pytest_ldos.record.strace import SyscallCount, add_syscalls, parse_syscalls, render_syscalls

TABLE = """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 75.00    0.030000          30      1000       100 futex
 25.00    0.010000          10      1000           clock_nanosleep
  0.00    0.000000           0         2         2 openat
------ ----------- ----------- --------- --------- ----------------
100.00    0.040000          19      2002       102 total
"""


def test_rows_have_calls_errors_seconds_and_shares():
    assert parse_syscalls(TABLE) == (
        SyscallCount("futex", 1000, 100, 0.03, 0.75),
        SyscallCount("clock_nanosleep", 1000, 0, 0.01, 0.25),
        SyscallCount("openat", 2, 2, 0.0, 0.0),
    )


def test_tables_add_up():
    both = add_syscalls([parse_syscalls(TABLE), (SyscallCount("read", 5, 0, 0.04, 1.0),)])
    assert [(each.name, each.seconds, each.share) for each in both][:2] == [("read", 0.04, 0.5), ("futex", 0.03, 0.375)]
    assert add_syscalls([]) == ()


def test_a_table_without_time_has_no_shares():
    table = TABLE.replace("0.030000", "0.000000").replace("0.010000", "0.000000")
    assert {each.share for each in parse_syscalls(table)} == {0.0}


def test_rendered_table():
    assert " 75.00%    0.030000       1000      100  futex\n" in render_syscalls(parse_syscalls(TABLE))


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        ("", "no table"),
        ("strace: Process 7 attached\n", "no table"),
        ("".join(TABLE.splitlines(keepends=True)[:4]), "ends before its total"),
        (TABLE[:200], "a row that makes no sense"),
        (TABLE.replace("1000       100", "many       100"), "a row that makes no sense"),
        (TABLE.replace("1000       100", "1000       100 7"), "a row that makes no sense"),
        (TABLE.replace("0.030000", "nan"), "a row that makes no sense"),
        (TABLE.replace("1000       100", "1000      1001"), "a row that makes no sense"),
        (TABLE.replace("1000       100", f"{10**20} 1"), "a row that makes no sense"),
        (TABLE.replace("1000       100 futex", "\x1b[31m"), "a row that makes no sense"),
    ],
)
def test_invalid_table_is_refused(damaged, message):
    with pytest.raises(ProfilingFailed, match=message) as caught:
        parse_syscalls(damaged)
    assert "\x1b" not in str(caught.value)
