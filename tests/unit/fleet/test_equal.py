"""All schedulers give the same tables."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from pytest_ldos.fleet.choose import LocalCluster, RemoteScheduler
from pytest_ldos.fleet.tasks import InProcess
from pytest_ldos.measure.metrics.catalogue import OwnSource
from pytest_ldos.show.export.parquet import measurements_frame, traces_frame, write_fleet

EXAMPLE = Path(__file__).parents[3] / "examples/own_metric/conftest.py"


@pytest.fixture(scope="module")
def request_(request_of):
    return request_of(own=OwnSource(EXAMPLE.name, str(EXAMPLE.parent)))


def read(scheduler, traces, request):
    found = {each.trace: each for each in scheduler.summarize(traces, request)}
    assert len(found) == len(traces)
    return [found[each.name] for each in traces]


@pytest.fixture(scope="module")
def alone(traces, request_):
    return read(InProcess(), traces, request_)


@pytest.fixture(scope="module")
def readers(scheduler):
    return {"two processes": LocalCluster(2), "a scheduler": RemoteScheduler(scheduler.address)}


@pytest.mark.parametrize("reader", [pytest.param("two processes", marks=pytest.mark.acceptance), "a scheduler"])
def test_tables_are_equal_cell_by_cell(reader, readers, traces, request_, alone, tmp_path):
    found = read(readers[reader], traces, request_)
    assert found == alone
    assert_frame_equal(traces_frame(found), traces_frame(alone), check_exact=True)
    assert_frame_equal(measurements_frame(found), measurements_frame(alone), check_exact=True)
    for name, summaries in (("one", alone), ("several", found)):
        write_fleet(summaries, tmp_path / name)
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "several" / file.name).read_bytes()


def test_content_of_the_tables(traces, alone):
    table = traces_frame(alone)
    assert table["trace"].to_list() == [each.name for each in traces]
    by_name = {Path(row["trace"]).name: row for row in table.iter_rows(named=True)}
    assert by_name["workspace_mock"]["reached"] == 3
    assert by_name["panda_baseline_1"]["unknown"] == 1
    assert by_name["talker_listener_perpid"]["nodes"] == 2
    assert "metadata" in by_name["broken"]["problem"]
    assert by_name["nothing"]["problem"] == "there is no such directory"
    assert by_name["broken"]["nodes"] is None
    measured = measurements_frame(alone)
    assert measured.filter(metric="state_age_p99", status="measured").height >= 1
    assert measured.filter(metric="T1", status="measured")["goal"].to_list()[1:] == [
        f"{each.goal}" for each in alone[-1].values if each.metric == "T1"
    ]


def test_results_are_small(alone, folder):
    """A worker sends only a summary."""
    for each in alone:
        files = [file for file in (folder / Path(each.trace).name).resolve().rglob("*") if file.is_file()]
        assert len(pickle.dumps(each)) < max(4000, sum(file.stat().st_size for file in files) / 20)
