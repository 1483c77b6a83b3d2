"""The four text files: the seed's columns, and parsable numbers."""

from __future__ import annotations

import math

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.instruments.topology.edges import Limits
from pytest_ldos.instruments.topology.presentation import prepare_folder, render_log, write_log
from pytest_ldos.instruments.topology.rounds import analyse
from tests.builders.topologies import arrivals, recorded, topology


@pytest.fixture
def analysis():
    start = recorded(arrivals({0: 1.0, 1: 3.0, 3: 12.0, 4: 2.0}), sent={0: 5})
    return analyse(topology(), [start], Limits(), case="two", rounds=1, cores=2)


def rows_of(text: str, splits: int = -1) -> list[dict[str, str]]:
    """Rows as the seed's programs read them, split at spaces."""
    heading, *lines = text.splitlines()
    names = heading.split()
    return [dict(zip(names, line.split(None, splits), strict=True)) for line in lines]


def test_latency_all(analysis):
    messages, replies = rows_of(render_log(analysis)["latency_all.txt"])
    assert " ".join(messages) == (
        "node topic size[b] received[#] late[#] too_late[#] lost[#] mean[us] sd[us] min[us] max[us] freq[hz] duration[s]"
    )
    assert messages == {
        "node": "listener",
        "topic": "counts",
        "size[b]": "8",
        "received[#]": "4",
        "late[#]": "1",
        "too_late[#]": "1",
        "lost[#]": "1",
        "mean[us]": "2000",
        "sd[us]": "1000",
        "min[us]": "1000",
        "max[us]": "3000",
        "freq[hz]": "100",
        "duration[s]": "0",
    }
    assert (replies["topic"], replies["received[#]"]) == ("sum", "0")
    assert math.isnan(float(replies["mean[us]"]))


def test_latency_total(analysis):
    (total,) = rows_of(render_log(analysis)["latency_total.txt"])
    assert " ".join(total) == "received[#] mean[us] late[#] late[%] too_late[#] too_late[%] lost[#] lost[%]"
    assert [float(each) for each in total.values()] == [4, 2000, 1, 25, 1, 25, 1, 20]


def test_resources(analysis):
    rows = rows_of(render_log(analysis)["resources.txt"])
    assert " ".join(rows[0]) == "time[ms] cpu[%] arena[KB] in_use[KB] mmap[KB] rss[KB] vsz[KB]"
    assert [float(each) for each in rows[1].values()] == [500, 25, 1000, 900, 100, 10 * 1024, 20 * 1024]
    assert [row["time[ms]"] for row in rows] == ["0", "500", "1000"]


def test_events(analysis):
    rows = rows_of(render_log(analysis)["events.txt"], 3)
    assert list(rows[0]) == ["Time[ms]", "Caller", "Code", "Description"]
    assert [row["Code"] for row in rows] == ["0", "1", "2", "3"]
    assert rows[1]["Caller"] == "counts->listener"
    assert rows[1]["Description"] == "msg 1 late. 3000us > 2000us"


def test_long_names_are_separated_from_the_next_column():
    long = "a" * 60
    made = {
        "nodes": [
            {"node_name": "t", "publishers": [{"topic_name": long, "msg_type": "stamped10b", "period_ms": 1}]},
            {"node_name": long, "subscribers": [{"topic_name": long, "msg_type": "stamped10b"}]},
        ]
    }
    log = render_log(analyse(topology(made), [recorded([])], Limits(), case="", rounds=1, cores=1))
    (row,) = rows_of(log["latency_all.txt"])
    assert (row["node"], row["topic"], row["size[b]"]) == (long, long, "10")


def test_files_are_written_and_invalid_folders_are_refused_first(analysis, tmp_path):
    prepare_folder(tmp_path / "new" / "log")
    write_log(analysis, tmp_path / "new" / "log")
    written = {each.name: each.read_text("utf-8") for each in (tmp_path / "new" / "log").iterdir()}
    assert written == render_log(analysis)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        prepare_folder(tmp_path / "file" / "log")
    (tmp_path / "taken" / "events.txt").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match=r"events\.txt cannot be written: it is a folder"):
        prepare_folder(tmp_path / "taken")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_log(analysis, tmp_path / "gone")
