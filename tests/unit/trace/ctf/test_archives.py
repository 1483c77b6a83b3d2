"""Archives are read like session directories, and unsafe or unrelated archives are refused."""

from __future__ import annotations

import gzip
import io
import lzma
import pickle
import sqlite3
import stat
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import fsspec
import pytest

from pytest_ldos.base.errors import ConfigurationError, TraceUnreadable, Unavailable
from pytest_ldos.trace.ctf import files as archives
from pytest_ldos.trace.ctf.files import address_of
from pytest_ldos.trace.ctf.read import read_trace
from tests.builders.ctf import Event, Int, Packet, Record, TraceBuilder
from tests.builders.refusals import refusal

TICK = Event("app:tick", 1, {"_value": Int(32)})


@pytest.fixture
def session(tmp_path):
    folder = tmp_path / "session"
    TraceBuilder([TICK]).write(
        folder / "ust" / "uid" / "0" / "64-bit",
        {"s_0": [Packet([Record(TICK, number, {"_value": number}) for number in (1, 2)])]},
    )
    return folder


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Folder of temporary files; asserts that it is empty after the test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def pack(session: Path, name: str) -> Path:
    place = session.parent / name
    if name.endswith(".zip"):
        with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as whole:
            for file in sorted(session.rglob("*")):
                whole.write(file, file.relative_to(session.parent))
        return place
    packed = io.BytesIO()
    modes = {("gz",): "w:gz", ("xz",): "w:xz", ("bz2",): "w:bz2"}
    mode: Any = next((mode for ends, mode in modes.items() if name.endswith(ends)), "w")
    with tarfile.open(fileobj=packed, mode=mode) as whole:
        whole.add(session, session.name)
    content = packed.getvalue()
    place.write_bytes(archives._zstd().compress(content) if name.endswith(".zst") else content)
    return place


NAMES = ("a.tar.zst", "a.tar.gz", "a.tgz", "a.tar", "a.zip", "a.tar.xz", "a.txz", "a.tar.bz2", "a.tbz2")


@pytest.mark.parametrize("name", NAMES)
def test_archive_is_read_like_its_folder(session, name):
    place = pack(session, name)
    found, plain = read_trace(place), read_trace(session)
    assert found.events["app:tick"].columns["value"].values.tolist() == [1, 2]
    assert found.directory == place
    inside = Path("ust/uid/0/64-bit")
    assert [each.directory for each in found.traces] == [place / session.name / inside]
    assert [each.path for each in found.stats.streams] == [place / session.name / inside / "s_0"]
    assert found.stats.events == plain.stats.events


def test_damaged_stream_is_named_within_its_archive(session):
    stream = session / "ust" / "uid" / "0" / "64-bit" / "s_0"
    stream.write_bytes(b"\0" + stream.read_bytes()[1:])
    place = pack(session, "a.tar.gz")
    assert refusal(place).path == place / stream.relative_to(session.parent)


@pytest.mark.parametrize("name", NAMES)
def test_truncated_archive_is_refused(session, name):
    place = pack(session, name)
    place.write_bytes(place.read_bytes()[: place.stat().st_size // 2])
    assert "cannot be unpacked" in refusal(place).reason


@pytest.mark.parametrize("name", NAMES)
def test_file_that_is_no_archive_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"no archive")
    assert "cannot be unpacked" in refusal(tmp_path / name).reason


@pytest.mark.parametrize(
    ("write", "what", "remedy"),
    [
        (
            lambda place: place.write_bytes(pickle.dumps([{"_name": "ros2:rcl_init"}])),
            "is a pickle",
            "that it was made of",
        ),
        (lambda place: sqlite3.connect(place).execute("CREATE TABLE messages (data BLOB)"), "is a bag", "ros2 trace"),
        (lambda place: place.write_bytes(b"\x89MCAP0\r\n" + bytes(20)), "is a bag (MCAP)", "ros2 trace"),
        (lambda place: place.write_bytes(gzip.compress(b"tar")), "is packed with gzip", "end with .tar.gz"),
        (lambda place: place.write_bytes(lzma.compress(b"tar")), "is packed with xz", "end with .tar.xz"),
        (
            lambda place: place.write_bytes(b"7z\xbc\xaf\x27\x1c"),
            "is an archive of a kind that is not read (7z)",
            "unpack",
        ),
        (lambda place: (place.mkdir(), (place / "metadata.yaml").touch()), "is a bag of rosbag2", "ros2 trace"),
        (lambda place: place.write_text("text"), "is a file, and no archive of a trace", "name the directory"),
    ],
    ids=["pickle", "sqlite", "mcap", "gzip", "xz", "7z", "bag", "text"],
)
def test_archive_without_trace_is_refused(tmp_path, write, what, remedy):
    write(tmp_path / "place")
    error = refusal(tmp_path / "place")
    assert error.reason.startswith(what)
    assert remedy in error.remedy


def test_folder_of_archives_is_refused_with_an_example(session):
    archive = pack(session, "a.tar.xz")
    (session.parent / "packed").mkdir()
    archive.rename(session.parent / "packed" / archive.name)
    assert "packed/a.tar.xz" in refusal(session.parent / "packed").remedy


def test_missing_archive_is_refused(tmp_path):
    assert "No such file" in refusal(tmp_path / "a.zip").reason


def hostile_tar(folder: Path, member: tarfile.TarInfo) -> Path:
    place = folder / "hostile.tar"
    with tarfile.open(place, "w") as whole:
        whole.addfile(member, io.BytesIO(b"\0" * member.size))
    return place


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.size = kind, link, 4 if kind == tarfile.REGTYPE else 0
    return made


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out", "..", "a/.."])
def test_path_outside_the_folder_is_refused(tmp_path, temporary, name):
    assert "leads out of it" in refusal(hostile_tar(tmp_path, member(name))).reason
    zipped = tmp_path / "hostile.zip"
    with zipfile.ZipFile(zipped, "w") as whole:
        whole.writestr(name, "out")
    assert "leads out of it" in refusal(zipped).reason
    assert not list(tmp_path.rglob("out"))


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE],
    ids=["link", "second", "pipe", "device"],
)
def test_special_files_are_refused(tmp_path, kind):
    assert "neither file nor folder" in refusal(hostile_tar(tmp_path, member("metadata", kind, "/etc/passwd"))).reason


def test_link_in_zip_is_refused(tmp_path):
    link = zipfile.ZipInfo("metadata")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as whole:
        whole.writestr(link, "/etc/passwd")
    assert "neither file nor folder" in refusal(tmp_path / "a.zip").reason


def test_duplicate_file_is_refused(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as whole:
        for _ in range(2):
            whole.addfile(member("metadata"), io.BytesIO(b"\0" * 4))
    with pytest.raises(ConfigurationError, match="File exists"):
        read_trace(tmp_path / "a.tar")


@pytest.mark.parametrize("name", ["bomb.zip", "bomb.tar.gz", "bomb.tar.zst"])
def test_decompression_bomb_is_refused_while_unpacking(tmp_path, temporary, monkeypatch, name):
    """64 MiB of zeros from a few kilobytes; the limit is 1 MiB plus 100 times the archive. Unpacking stops early."""
    monkeypatch.setattr(archives, "_ALWAYS", 1 << 20)
    monkeypatch.setattr(archives, "_CHUNK", 1 << 16)
    (tmp_path / "session").mkdir()
    (tmp_path / "session" / "metadata").write_bytes(bytes(64 << 20))
    written = []
    real = archives._refuse_too_large
    monkeypatch.setattr(archives, "_refuse_too_large", lambda room, origin: (written.append(room), real(room, origin)))
    place = pack(tmp_path / "session", name)
    assert "larger than a trace can be" in refusal(place).reason
    assert len(written) * (1 << 16) < 16 << 20


def test_too_many_files_are_refused(session, monkeypatch):
    monkeypatch.setattr(archives, "MOST_FILES", 3)
    assert "more than 3 files" in refusal(pack(session, "a.zip")).reason


def test_encrypted_zip_is_refused(session):
    place = pack(session, "a.zip")
    content = bytearray(place.read_bytes())
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        found = content.find(magic)
        while found >= 0:
            content[found + offset] |= 1
            found = content.find(magic, found + 4)
    place.write_bytes(content)
    assert "password" in refusal(place).reason


def test_missing_zstandard_package_is_named(session, monkeypatch):
    place = pack(session, "a.tar.zst")
    monkeypatch.setitem(sys.modules, archives._ZSTD, None)
    with pytest.raises(Unavailable, match=r"backports\.zstd"):
        read_trace(place)


@pytest.fixture
def store():
    files = fsspec.filesystem("memory")
    files.store.clear()
    yield files
    files.store.clear()


@pytest.mark.parametrize(
    "address", ["memory://bucket/a.tar.zst", Path("memory://bucket/a.tar.zst")], ids=["text", "path"]
)
def test_archive_is_read_from_an_address(session, store, address):
    store.pipe("/bucket/a.tar.zst", pack(session, "a.tar.zst").read_bytes())
    assert len(read_trace(address)) == 2


def test_damaged_archive_is_named_by_its_address(store):
    store.pipe("/bucket/a.zip", b"no archive")
    assert refusal(Path("memory://bucket/a.zip")).path == Path("memory://bucket/a.zip")


def test_folder_is_read_from_an_address(session, store):
    store.put(str(session), "/bucket/session", recursive=True)
    assert len(read_trace("memory://bucket/session")) == 2
    stream = "/bucket/session/ust/uid/0/64-bit/s_0"
    store.pipe(stream, b"\0" + store.cat(stream)[1:])
    with pytest.raises(TraceUnreadable, match=r"memory:/bucket/session/ust/uid/0/64-bit/s_0"):
        read_trace("memory://bucket/session")


def test_missing_or_unknown_address_is_refused():
    assert "nothing is there" in refusal(Path("memory://none/at all")).reason
    assert "cannot be fetched" in refusal(Path("gopher://bucket/a")).reason
    with pytest.raises(ConfigurationError, match="on this machine"):
        read_trace("file://tmp/a")


def test_address_without_fsspec_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(Unavailable, match=r"pytest-ldos\[fleet\]|fsspec"):
        read_trace("s3://bucket/a")


def test_address_is_recognised(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert address_of(Path("s3://bucket/a")) == "s3://bucket/a"
    assert [address_of(Path(each)) for each in ("/a", "a/b", "a:b/c", "C:/x")] == [None] * 4
    (tmp_path / "s3:").mkdir()
    assert address_of(Path("s3:/bucket")) is None
