"""Default requirements of a revision."""

from __future__ import annotations

import pytest

from pytest_ldos.campaign.versions.find import requirements_of

NAMED = '[project]\nname = "arm"\nversion = "1"\n'


@pytest.mark.parametrize(
    ("pyproject", "wanted"),
    [
        ('[project]\nname = "Pytest_LDOS"\n', [".[embedded]"]),
        ('\ufeff[project]\nname = "Pytest_LDOS"\n', [".[embedded]"]),
        (NAMED + 'dependencies = ["numpy", "pytest-ldos[embedded]>=0.1"]\n', ["."]),
        (
            NAMED + '[project.optional-dependencies]\ntest = ["pytest-ldos[embedded]", "rich"]\n',
            [".", "pytest-ldos[embedded]"],
        ),
        (
            '[dependency-groups]\ndev = [{ include-group = "x" }, "pytest_ldos[embedded] @ file:///src"]\n',
            ["pytest_ldos[embedded] @ file:///src"],
        ),
        (NAMED, ["."]),
        ("[tool.black]\n", []),
    ],
)
def test_project_and_requirements_with_pytest_ldos(tmp_path, pyproject, wanted):
    (tmp_path / "pyproject.toml").write_text(pyproject)
    assert requirements_of(tmp_path) == wanted


def test_invalid_toml_is_refused(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project\n")
    with pytest.raises(ValueError, match="line 1"):
        requirements_of(tmp_path)


@pytest.mark.parametrize(
    ("pyproject", "message"),
    [
        ("project = 3\n", "project is no table"),
        (NAMED + 'dependencies = "pytest-ldos"\n', "dependencies is no list"),
        (NAMED + 'optional-dependencies = ["pytest-ldos"]\n', "optional-dependencies is no table"),
        (NAMED + '[project.optional-dependencies]\ntest = "pytest-ldos"\n', "test is no list"),
        ('dependency-groups = "pytest-ldos"\n', "dependency-groups is no table"),
    ],
)
def test_wrong_types_are_refused(tmp_path, pyproject, message):
    (tmp_path / "pyproject.toml").write_text(pyproject)
    with pytest.raises(ValueError, match=message):
        requirements_of(tmp_path)


def test_a_folder_without_a_project(tmp_path):
    assert requirements_of(tmp_path) == []
