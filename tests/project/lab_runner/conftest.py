"""A hook as root has set it up: an allow-list of the right owner, and a free lock."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.runner.main import check
from lab.runner.refusal import Refused
from tests.builders.runner import ALLOW_LIST, Started


@pytest.fixture
def lock() -> str:
    return f"ldos-test-{secrets.token_hex(8)}"


@pytest.fixture
def allow_list(tmp_path: Path, lock: str) -> Path:
    file = tmp_path / "runner.toml"
    file.write_text(ALLOW_LIST.replace("LOCK", lock), "utf-8")
    file.chmod(0o644)
    return file


@pytest.fixture
def refusal(tmp_path: Path, allow_list: Path) -> Callable[[Started], str]:
    """The reason why a job may not begin; empty if it may."""

    def ask(started: Started) -> str:
        try:
            check(started.environment(tmp_path), allow_list, owner=os.geteuid(), require=lambda demands: None)
        except Refused as refused:
            return str(refused)
        return ""

    return ask
