"""Labels of machines: a variable becomes a workflow's matrix, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.builders.ci_rooms import ROOM


def host_classes(text: str, output: str = "") -> subprocess.CompletedProcess[str]:
    """As a workflow does; the only environment is what it gives."""
    return subprocess.run(
        [sys.executable, "-I", "-S", ROOM, "host-classes"],
        env={"LDOS_HOST_CLASSES": text, "GITHUB_OUTPUT": output},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("", ["ldos-lab"]),
        (" \n", ["ldos-lab"]),
        ('["ldos-lab-c220g5", "ldos-lab-d430-2"]', ["ldos-lab-c220g5", "ldos-lab-d430-2"]),
    ],
)
def test_labels(tmp_path, text, labels):
    output = tmp_path / "output"
    output.write_text("before=1\n", "utf-8")
    done = host_classes(text, str(output))
    assert (done.returncode, done.stderr) == (0, "")
    assert output.read_text("utf-8") == f"before=1\nlabels={json.dumps(labels)}\n"


HOSTILE = [
    "[",
    "{}",
    "[]",
    "null",
    '"ldos-lab"',
    "[1]",
    '[["ldos-lab"]]',
    '["ubuntu-24.04"]',
    '["self-hosted"]',
    '["ldos-lab; touch owned"]',
    '["ldos-lab\\nevil=1"]',
    '["ldos-lab-${{ github.token }}"]',
    '["ldos-lab-../x"]',
    '["ldos-lab-"]',
    '["LDOS-LAB"]',
    '["ldos-lab-é"]',
    '["ldos-lab", "ldos-lab"]',
    json.dumps(["ldos-lab-" + "x" * 60]),
    json.dumps([f"ldos-lab-{number}" for number in range(17)]),
    "[" * 10_000,
]


def test_invalid_lists_of_labels_are_refused(module_of):
    labels = module_of("labels")
    failed = module_of("github_api").Failed
    for text in HOSTILE:
        with pytest.raises(failed, match="host class"):
            labels.parse_labels(text)


def test_invalid_labels_make_no_matrix(tmp_path):
    output = tmp_path / "output"
    done = host_classes('["ldos-lab\\nevil=1"]', str(output))
    assert done.returncode == 1
    assert (
        done.stderr == "results: 'ldos-lab\\nevil=1' is no label of a host class; these are ldos-lab or ldos-lab-NAME\n"
    )
    assert not output.exists()
