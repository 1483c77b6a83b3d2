"""Install prefixes of ROS 2, and replacement of the sourced ones."""

from __future__ import annotations

import os

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.campaign.versions.workspace import find_prefix, source
from pytest_ldos.robot.stack.protocol import OURS

SETUP = """
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
export AMENT_PREFIX_PATH="$here:/underlay${AMENT_PREFIX_PATH:+:$AMENT_PREFIX_PATH}"
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
echo "sourced" # what it prints is no variable
"""


@pytest.fixture
def prefix(tmp_path, monkeypatch):
    """A prefix, while another one is sourced."""
    folder = tmp_path / "old install"
    folder.mkdir()
    (folder / "setup.bash").write_text(SETUP)
    monkeypatch.setenv("AMENT_PREFIX_PATH", "/head/ws/arm:/head/distro")
    monkeypatch.setenv("COLCON_PREFIX_PATH", "/head/ws")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/head/ws/arm/lib:/mine/lib")
    monkeypatch.setenv("GZ_PLUGINS", "/head/ws/arm/plugins")
    monkeypatch.setenv("EMPTY", "")
    return folder


def test_the_sourced_prefixes_are_replaced(prefix):
    environment = source(prefix)
    assert environment["AMENT_PREFIX_PATH"] == f"{prefix}:/underlay"
    assert environment["LD_LIBRARY_PATH"] == f"{prefix}/lib:/mine/lib"
    assert environment["GZ_PLUGINS"] == environment["COLCON_PREFIX_PATH"] == environment["EMPTY"] == ""
    assert "PWD" not in environment


def test_a_prefix_is_a_version(prefix, tmp_path):
    version = find_prefix("old install", folder=tmp_path)
    assert version.name == "base old install"
    assert version.installation.environment["AMENT_PREFIX_PATH"].startswith(str(prefix))


def test_sourced_prefix_is_the_current_version(prefix, tmp_path, monkeypatch):
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{prefix}:/underlay")
    assert find_prefix("old install", folder=tmp_path).installation == OURS


@pytest.mark.parametrize("text", ["absent", "."])
def test_other_folder_is_no_prefix(prefix, tmp_path, text):
    with pytest.raises(
        ConfigurationError, match=r"must be an install prefix, and .*/setup.bash is no file(.|\n)*colcon"
    ):
        find_prefix(text, folder=tmp_path)


def test_empty_prefix_is_refused(prefix, tmp_path):
    (prefix / "setup.bash").write_text("true")
    with pytest.raises(ConfigurationError, match="gives no ROS package of this prefix"):
        find_prefix("old install", folder=tmp_path)


def test_failed_script_is_an_error(prefix):
    (prefix / "setup.bash").write_text("echo underlay is gone >&2; return 4")
    with pytest.raises(ConfigurationError, match=r"cannot be sourced(.|\n)*underlay is gone"):
        source(prefix)


def test_script_without_end_times_out(prefix, monkeypatch):
    """The error has its output, in any encoding."""
    monkeypatch.setattr("pytest_ldos.campaign.versions.workspace._TIMEOUT_S", 0.3)
    (prefix / "setup.bash").write_bytes(b"echo waits for \xe9 >&2; exec sleep 60")
    with pytest.raises(ConfigurationError, match=r"timed out(.|\n)*waits for \ufffd"):
        source(prefix)


def test_values_that_are_not_utf_8_are_kept(prefix):
    with (prefix / "setup.bash").open("ab") as script:
        script.write(b"export NAME=$'caf\\xe9'\n")
    assert os.fsencode(source(prefix)["NAME"]) == b"caf\xe9"
