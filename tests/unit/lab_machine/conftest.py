from __future__ import annotations

import pytest

from tests.builders.lab import build_lab_machine


@pytest.fixture
def machine(tmp_path):
    return build_lab_machine(tmp_path)
