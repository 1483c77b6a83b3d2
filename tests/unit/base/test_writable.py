"""Result paths are checked before a measurement, and only files are replaced."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.files import require_writable_file, require_writable_folder


def test_writable_path_is_not_changed(tmp_path):
    (tmp_path / "there").write_text("kept")
    require_writable_file(tmp_path / "there")
    require_writable_file(tmp_path / "new" / "deep" / "file")
    require_writable_folder(tmp_path / "other")
    assert (tmp_path / "there").read_text() == "kept"
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["deep", "new", "other", "there"]


def test_invalid_file_is_refused_with_a_remedy(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("")
    for place, printed in (
        (tmp_path, "it is a folder"),
        (tmp_path / "pipe", "it is a pipe or a device"),
        (tmp_path / "file" / "x", "Not a directory"),
        (tmp_path / ("n" * 300) / "x", "File name too long"),
    ):
        with pytest.raises(ConfigurationError, match=printed) as caught:
            require_writable_file(place)
        assert caught.value.remedy


def test_invalid_folder_is_refused_with_a_remedy(tmp_path):
    (tmp_path / "file").write_text("")
    for place, printed in ((tmp_path / "file", "Not a directory"), (tmp_path / "file" / "x", "Not a directory")):
        with pytest.raises(ConfigurationError, match=printed) as caught:
            require_writable_folder(place)
        assert caught.value.remedy


def test_folder_without_permission_is_refused(tmp_path):
    """In an unprivileged process."""
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents[:2]:
        folder.chmod(0o755)
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    code = (
        "import os, sys; from pathlib import Path\n"
        "from pytest_ldos.base.files import require_writable_file\n"
        "from pytest_ldos.base.errors import NotWritten\n"
        "if os.getuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "try: require_writable_file(Path(sys.argv[1]))\n"
        "except NotWritten as error: print(error)\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code, str(locked / "x")], capture_output=True, text=True, check=True
    )
    assert "cannot be written: Permission denied" in printed.stdout
