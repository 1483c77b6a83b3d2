"""The two files the hook reads: the event's payload, where jobs can write, and root's allow-list."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lab.runner import job
from lab.runner.files import read_configuration, read_payload
from lab.runner.main import check
from lab.runner.refusal import Refused
from tests.builders.runner import push


@pytest.fixture
def ask(tmp_path, allow_list):
    """The reason for refusing a job with a given payload file."""

    def ask(file) -> str:
        environment = {**push().environment(tmp_path), "GITHUB_EVENT_PATH": str(file)}
        with pytest.raises(Refused) as refused:
            check(environment, allow_list, owner=os.geteuid())
        return str(refused.value)

    return ask


@pytest.fixture
def payload(tmp_path):
    return tmp_path / "_github_workflow" / "event.json"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no JSON: JSONDecodeError"),
        (b"{", "no JSON: JSONDecodeError"),
        (b"\xff\xfe{}", "no JSON: UnicodeDecodeError"),
        (b"[" * 100_000, "no JSON: RecursionError"),
        (b'{"id": ' + b"9" * 5000 + b"}", "no JSON: ValueError"),
        (b"[]", "no JSON object"),
        (b"null", "no JSON object"),
        (b'{"ref": "refs/heads/main", "ref": "refs/heads/evil"}', "says something twice"),
        (b'{"repository": {"id": 1, "id": 2}}', "says something twice"),
    ],
)
def test_invalid_payload_is_refused(tmp_path, ask, content, reason):
    file = tmp_path / "bad.json"
    file.write_bytes(content)
    assert reason in ask(file)


def test_a_huge_payload(tmp_path, ask):
    file = tmp_path / "huge.json"
    with file.open("wb") as stream:
        stream.truncate(job.LARGEST_PAYLOAD + 1)
    assert ask(file) == f"the event's payload is larger than {job.LARGEST_PAYLOAD} bytes"


def test_missing_payload_or_special_file(tmp_path, ask):
    assert "cannot be opened: No such file" in ask(tmp_path / "absent.json")
    assert "is no regular file" in ask(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "is no regular file" in ask(tmp_path / "pipe")
    assert "GITHUB_EVENT_PATH cannot be 'event.json'" in ask("event.json")


def test_a_symlinked_payload(tmp_path, ask, payload):
    link = tmp_path / "link.json"
    link.symlink_to(payload)
    assert "is a symbolic link" in ask(link)


def test_hard_linked_payload(tmp_path, ask, payload):
    push().environment(tmp_path)
    os.link(payload, tmp_path / "other.json")
    assert "has a second name" in ask(tmp_path / "other.json")


def test_a_payload_that_others_can_write(tmp_path, ask):
    file = tmp_path / "open.json"
    file.write_text("{}", "utf-8")
    file.chmod(0o666)
    assert "can be written by others" in ask(file)


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_an_allow_list_that_others_can_write(allow_list, mode):
    allow_list.chmod(mode)
    with pytest.raises(Refused, match="can be written by others"):
        read_configuration(allow_list, owner=os.geteuid())


def test_an_allow_list_in_a_folder_that_others_can_write(allow_list):
    allow_list.parent.chmod(0o777)
    with pytest.raises(Refused, match="can be written by others"):
        read_configuration(allow_list, owner=os.geteuid())


def test_allow_list_of_another_owner(allow_list):
    """Unless it is root's, as the tests of a container's root are."""
    if os.geteuid() == 0:
        os.chown(allow_list, 12345, -1)
    with pytest.raises(Refused, match=r"belongs to user \d+, not to 0"):
        read_configuration(allow_list)


def test_an_allow_list_that_is_a_link(allow_list):
    link = allow_list.with_name("link.toml")
    link.symlink_to(allow_list)
    with pytest.raises(Refused, match="is a symbolic link"):
        read_configuration(link, owner=os.geteuid())


def test_missing_allow_list(tmp_path):
    with pytest.raises(Refused, match="cannot be opened: No such file"):
        read_configuration(tmp_path / "none" / "runner.toml", owner=os.geteuid())


def test_an_allow_list_behind_a_link(allow_list, tmp_path):
    real = tmp_path / "real"
    real.mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(real)
    moved = allow_list.rename(real / "runner.toml")
    read_configuration(moved, owner=os.geteuid())
    with pytest.raises(Refused, match="link' is a symbolic link"):
        read_configuration(tmp_path / "link" / "runner.toml", owner=os.geteuid())


def test_relative_path_of_an_allow_list_is_refused(allow_list, monkeypatch):
    monkeypatch.chdir(allow_list.parent)
    with pytest.raises(Refused, match="is not named by an absolute path"):
        read_configuration(Path(allow_list.name), owner=os.geteuid())


def test_a_payload_of_another_user(tmp_path, payload):
    push().environment(tmp_path)
    with pytest.raises(Refused, match=r"belongs to user \d+, the runner is"):
        read_payload(payload, largest=job.LARGEST_PAYLOAD, owner=os.geteuid() + 1)
