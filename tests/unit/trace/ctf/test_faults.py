"""Directories and metadata that are no trace are refused with a remedy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ldos.trace.ctf.read import read_trace
from tests.builders.ctf import Event, Int, Packet, Record, TraceBuilder
from tests.builders.refusals import refusal

TICK = Event("app:tick", 1, {"_value": Int(32)})
NOBODY = 65534


def write(directory: Path, **options) -> TraceBuilder:
    builder = TraceBuilder([TICK], **options)
    builder.write(directory, {"s_0": [Packet([Record(TICK, 1, {"_value": 1})])]})
    return builder


def test_missing_directory(tmp_path):
    assert "there is no such directory" in refusal(tmp_path / "nowhere").reason


def test_directory_without_metadata(tmp_path):
    write(tmp_path)
    (tmp_path / "metadata").unlink()
    error = refusal(tmp_path)
    assert "no file named `metadata`" in error.reason
    assert "lttng create" in error.remedy


def test_a_file_instead_of_a_directory(tmp_path):
    write(tmp_path)
    error = refusal(tmp_path / "s_0")
    assert error.reason == "is a stream of a trace"
    assert "name the folder" in error.remedy


READ = """
import sys
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.base.errors import TraceUnreadable
import os
if os.geteuid() == 0:
    os.setgroups([])
    os.setuid(int(sys.argv[2]))
try:
    read_trace(sys.argv[1])
except TraceUnreadable as error:
    print(error)
"""


@pytest.mark.parametrize("closed", ["trace", "trace/ust", "trace/ust/metadata", "trace/ust/s_0"])
def test_missing_permission(tmp_path, closed):
    """Runs as an ordinary user: root may read everything."""
    write(tmp_path / "trace/ust")
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    (tmp_path / closed).chmod(0)
    try:
        command = [sys.executable, "-c", READ, str(tmp_path / "trace"), str(NOBODY)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    finally:
        (tmp_path / closed).chmod(0o755)
    assert str(tmp_path / closed) in done.stdout
    assert "Permission denied" in done.stdout
    assert "as the user who recorded it" in done.stdout


def test_empty_metadata(tmp_path):
    write(tmp_path)
    (tmp_path / "metadata").write_bytes(b"")
    error = refusal(tmp_path)
    assert (error.path, error.offset) == (tmp_path / "metadata", 0)
    assert "metadata is empty" in error.reason
    assert "lttng stop" in error.remedy


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"name: something else\n", "begins neither with '/* CTF 1.8 */'"),
        (b"x", "begins neither with '/* CTF 1.8 */'"),
        (b"\x7fELF\x02\x01", "neither text nor a packet"),
        (b"\0" * 64, "neither text nor a packet"),
    ],
)
def test_other_file_named_metadata(tmp_path, content, complaint):
    (tmp_path / "metadata").write_bytes(content)
    error = refusal(tmp_path)
    assert "not CTF metadata" in error.reason
    assert complaint in error.reason


def test_directory_named_metadata_is_ignored(tmp_path):
    (tmp_path / "metadata").mkdir()
    assert "no file named `metadata`" in refusal(tmp_path).reason


def test_names_that_are_not_utf8(tmp_path):
    """File names and names in metadata may be any bytes."""
    write(tmp_path)
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/s_\xff")
    (tmp_path / "s_0").rename(odd)
    assert read_trace(tmp_path).stats.streams[0].path == Path(odd)
    Path(odd).write_bytes(b"not a stream")
    assert refusal(tmp_path).path == Path(odd)
    builder = TraceBuilder([TICK], packetized=False)
    text = builder.tsdl().encode().replace(b"stream_id = 0; fields", b"stream_id = 9; fields")
    (tmp_path / "metadata").write_bytes(text.replace(b"app:tick", b"app:\xff\x1b[31m"))
    assert "event 'app:\\xff" in refusal(tmp_path).reason


def test_a_pipe_among_the_streams_does_not_block(tmp_path):
    write(tmp_path)
    os.mkfifo(tmp_path / "s_1")
    assert "not a regular file" in refusal(tmp_path).reason


@pytest.mark.parametrize("kept", [20, 37, 400])
def test_truncated_metadata(tmp_path, kept):
    """For example, it was copied during recording."""
    builder = write(tmp_path)
    (tmp_path / "metadata").write_bytes(builder.metadata()[:kept])
    error = refusal(tmp_path)
    assert "while it was recorded" in error.reason
    assert "lttng stop" in error.remedy


def test_truncated_plain_metadata(tmp_path):
    builder = write(tmp_path, packetized=False)
    text = builder.tsdl()
    (tmp_path / "metadata").write_text(text[: text.index("event_header") + 20])
    reason = refusal(tmp_path).reason
    assert "the end of the metadata" in reason
    assert "line 12" in reason


@pytest.mark.parametrize("big_endian", [False, True])
def test_damaged_metadata_packet(tmp_path, big_endian):
    builder = write(tmp_path, big_endian=big_endian)
    data = bytearray(builder.metadata())
    damage = [
        (24, b"\xff\xff\xff", "impossible sizes"),
        (32, b"\1", "compressed"),
        (34, b"\1", "checksum"),
        (35, b"\1\7", "version 1.7"),
    ]
    for at, content, complaint in damage:
        broken = bytearray(data)
        broken[at : at + len(content)] = content
        (tmp_path / "metadata").write_bytes(bytes(broken))
        assert complaint in refusal(tmp_path).reason
    (tmp_path / "metadata").write_bytes(bytes(data) + b"trailing " * 20)
    error = refusal(tmp_path)
    assert "not a metadata packet" in error.reason
    assert error.offset == len(data)


def test_undeclared_clock(tmp_path):
    """A field at any level may name a clock."""
    builder = write(tmp_path, packetized=False)
    event = Event("app:other", 2, {"_at": Int(64, clock="wall")})
    text = TraceBuilder([TICK, event], packetized=False).tsdl()
    (tmp_path / "metadata").write_text(text)
    reason = refusal(tmp_path).reason
    assert "clock 'wall', which is not declared" in reason
    assert f"line {len(builder.tsdl().splitlines()) + 1}" in reason


def test_metadata_text_without_its_packets(tmp_path):
    """The text was extracted from its packets; the error has a remedy."""
    builder = write(tmp_path, packetized=False)
    (tmp_path / "metadata").write_text(builder.tsdl().removeprefix("/* CTF 1.8 */"))
    error = refusal(tmp_path)
    assert "begins neither with '/* CTF 1.8 */'" in error.reason
    assert "put `/* CTF 1.8 */` in front" in error.remedy


def test_last_metadata_packet_without_padding(tmp_path):
    builder = write(tmp_path)
    (tmp_path / "metadata").write_bytes(builder.metadata().rstrip(b"\0"))
    assert len(read_trace(tmp_path)) == 1


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("uint32_t stream_id;", "", "several streams, but packets do not say"),
        ("packet_context;  };", "packet_context; }; stream { };", "stream without an id"),
        ("stream_id = 0; fields", "fields", "does not say in which stream it lies"),
        ("id = 7; stream_id", "stream_id", "has no id"),
        ('name = "app:tick"; ', "", "event without a name"),
        ("byte_order = le;", "", "trace block without byte_order"),
        ("env {", "trace { major = 1; minor = 8; byte_order = le; }; env {", "a second trace block"),
        ("id = 0; event.header", "id = -1; event.header", "'id' is not a number from 0 on"),
        ("major = 1", "major = one", "'major' is not a number"),
        ('hostname = "builder"', "hostname = 9223372036854775808", "'hostname' does not fit 64 bits"),
        ('hostname = "builder"', r'hostname = "\q"', "unknown character escape"),
        ('hostname = "builder"', r'hostname = "\x"', "escape without digits"),
        ('hostname = "builder"', r'hostname = "\777"', "does not fit a byte"),
    ],
)
def test_ambiguous_declarations(tmp_path, old, new, complaint):
    """With two streams or two events, ids are required."""
    builder = write(tmp_path, packetized=False)
    text = builder.tsdl().replace("stream { id = 0", "stream { id = 4; };\nstream { id = 0", 1)
    text += 'event { name = "app:other"; id = 7; stream_id = 0; };\n'
    assert old in text
    (tmp_path / "metadata").write_text(text.replace(old, new, 1))
    assert complaint in refusal(tmp_path).reason


def test_events_without_id(tmp_path):
    builder = write(tmp_path, packetized=False, header="none")
    text = builder.tsdl().replace("struct event_header { uint32_t id;", "struct event_header {")
    (tmp_path / "metadata").write_text(text + 'event { name = "app:other"; id = 2; stream_id = 0; };\n')
    assert "several events in stream 0" in refusal(tmp_path).reason


def test_events_of_two_clocks(tmp_path):
    builder = write(tmp_path, packetized=False)
    text = builder.tsdl().replace("clock {", "clock { name = wall; };\nclock {", 1)
    text = text.replace(
        "u64_t timestamp; } extended", "integer { size = 64; map = clock.wall.value; } timestamp; } extended"
    )
    (tmp_path / "metadata").write_text(text)
    assert "two clocks" in refusal(tmp_path).reason


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ("uint8_t a; uint8_t a;", "'a' is declared twice"),
        ("uint8_t a[b];", "'b' of 'a' is not a field before it"),
        ("variant <b> { uint8_t x; } a;", "'b' of 'a' is not an enumeration before it"),
        ("struct {} a[1000000000];", "elements that may be empty"),
        ("struct " + "{ struct " * 70 + "{ uint8_t a; }" + " a; }" * 70 + " b;", "nested too deeply"),
        ("floating_point { exp_dig = 5; mant_dig = 11; } a;", "of this size are not read"),
        ("integer { size = 8; byte_order = middle; } a;", "unknown byte order 'middle'"),
        ("integer { size = 8; align = 3; } a;", "not a power of two"),
    ],
)
def test_invalid_fields(tmp_path, members, complaint):
    builder = write(tmp_path, packetized=False)
    text = builder.tsdl().replace("fields := struct {", f"fields := struct {{ {members}", 1)
    (tmp_path / "metadata").write_text(text)
    assert complaint in refusal(tmp_path).reason


def test_exponential_types(tmp_path):
    """Sixty lines can declare 2^60 fields: each type holds two of the previous one."""
    builder = write(tmp_path, packetized=False)
    doubled = ["typealias struct { uint8_t x; } := t0;"]
    doubled += [f"typealias struct {{ t{n} a; t{n} b; }} := t{n + 1};" for n in range(60)]
    text = builder.tsdl() + "\n".join(doubled)
    text += '\nevent { name = "app:huge"; id = 9; stream_id = 0; fields := struct { t60 all; }; };'
    (tmp_path / "metadata").write_text(text)
    assert "too many fields" in refusal(tmp_path).reason


def test_chained_types_are_as_limited_as_nested_ones(tmp_path):
    builder = write(tmp_path, packetized=False)
    chain = ["typealias struct { uint8_t x; } := t0;"]
    chain += [f"typealias struct {{ t{n} a; }} := t{n + 1};" for n in range(100_000)]
    (tmp_path / "metadata").write_text(builder.tsdl() + "\n".join(chain))
    assert "nested too deeply" in refusal(tmp_path).reason
