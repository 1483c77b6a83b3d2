"""The plugin's messages on terminals with limited character sets."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from _pytest._io import TerminalWriter

from pytest_ldos.base.text import Rendered
from pytest_ldos.plugin.messages import write_rendered


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("ascii", "T1  8.4 ms\n  \\u2192 again\n"),
        ("utf-8", "T1  8.4 ms\n  → again\n"),
        (None, "T1  8.4 ms\n  → again\n"),
    ],
)
def test_summary_section_keeps_its_lines(encoding, shown):
    """pytest writes out all of what a terminal does not take, line ends as well."""
    sink = io.BytesIO()
    file = io.StringIO() if encoding is None else io.TextIOWrapper(sink, encoding=encoding, write_through=True)
    writer = TerminalWriter(file)
    write_rendered(SimpleNamespace(_tw=writer, write=writer.write), Rendered("T1  8.4 ms\n  → again\n"))
    assert (file.getvalue() if encoding is None else sink.getvalue().decode()) == shown
