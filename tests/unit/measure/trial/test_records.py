"""Records round-trip, and damaged ones are refused by name."""

from __future__ import annotations

import codecs
import dataclasses
import errno
import json
import os
from pathlib import Path

import pytest

from pytest_ldos.base.errors import NotWritten, RecordUnreadable
from pytest_ldos.base.files import write_atomically
from pytest_ldos.base.series import CENSORED, Better, Invalid, Missing
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.model import PLANNED_DURATION, Measurement, Metric, published_clock
from pytest_ldos.measure.metrics.on_cpus import Placed
from pytest_ldos.measure.trial.artifacts import (
    ScenarioFolder,
    decode_trials,
    encode_trials,
    enforce_disk_limit,
    is_worth_keeping,
    new_run_folder,
    new_scenario_folder,
    read_trials,
    write_trials,
)
from pytest_ldos.measure.trial.record import OURS, Look, invalid_trials, missing_reasons, to_series
from pytest_ldos.scenario.model import FaultSpec, ScenarioSpec, StackSpec
from pytest_ldos.scenario.words import KeepTraces
from tests.builders.trials import failed_trial, noisy_set, trial, trial_set


@pytest.fixture
def mixed():
    odd = trial(1, {"T1": Missing("never"), "T2": Invalid("3 events lost")})
    detailed = trial(2, {"T1": 14.123456789012344, "T4": 1970.0})
    return trial_set([failed_trial(0), odd, detailed], loads=({"kind": "dds_flood", "shortfall": "", "summary": "x"},))


def test_record_round_trip(mixed, tmp_path):
    folder = ScenarioFolder(tmp_path)
    write_trials(folder, mixed)
    assert read_trials(tmp_path) == mixed
    assert read_trials(folder.trials_file) == mixed
    folder.trials_file.write_bytes(codecs.BOM_UTF8 + folder.trials_file.read_bytes())
    assert read_trials(tmp_path) == mixed, "a byte order mark is no part of the record"


def test_growing_record_is_indented_json():
    """Text of earlier trials is kept, and that of new and changed ones is made."""
    whole = noisy_set(0)
    changed = dataclasses.replace(whole.trials[1], message="\n  changed\n")
    for trials in ((), whole.trials[:1], whole.trials, (whole.trials[0], changed)):
        text = encode_trials(dataclasses.replace(whole, trials=trials))
        assert text == json.dumps(json.loads(text), indent=1) + "\n"
        assert len(json.loads(text)["trials"]) == len(trials)
    assert json.loads(text)["trials"][1]["message"] == "\n  changed\n"


def test_details_round_trip(tmp_path):
    measured = trial(0, {})
    measured.measurements["T3"] = Measurement(0.1, {"p99_ms": 0.3, "misses": 0.0})
    measured.measurements["T5"] = Measurement(0.2, {}, published_clock("/clock"))
    (read,) = decode_trials(encode_trials(trial_set([measured])), tmp_path).trials
    assert read.measurements["T3"].details["p99_ms"] == 0.3
    assert read.measurements["T3"].source is None
    assert read.measurements["T5"].source == published_clock("/clock")
    assert read.measurements["T5"].source.is_approximate


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: len(text) // 2], "is no JSON"),
        (lambda text: "[1, 2]", "holds no pytest-ldos trials"),
        (lambda text: text.replace('"schema": 5', '"schema": 99'), "schema version 99"),
        (lambda text: text.replace('"T1"', '"T1', 1), "is no JSON"),
        (lambda text: text.replace('"outcome": "success"', '"outcome": "splendid"'), "is damaged"),
        (lambda text: text.replace('"trials": 3', '"trials": 0'), "is damaged"),
        (lambda text: text.replace('"goal_id"', '"gaol_id"'), "is damaged"),
        (lambda text: text.replace("14.123456789012344", "NaN"), "is damaged"),
        (lambda text: text.replace("14.123456789012344", '"x"'), "is damaged"),
        (lambda text: text.replace('"name": "markers"', '"nom": "markers"'), "is damaged"),
    ],
)
def test_damaged_records_are_refused_with_their_path(mixed, tmp_path, change, message):
    file = tmp_path / "trials.json"
    file.write_text(change(encode_trials(mixed)))
    with pytest.raises(RecordUnreadable, match=message) as caught:
        read_trials(file)
    assert str(file) in str(caught.value)
    assert "--ldos-update-baseline" in caught.value.remedy


def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "x.json"
    write_atomically(file, "old")

    def fail(descriptor):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(NotWritten, match=r"x\.json cannot be written: Input/output error") as caught:
        write_atomically(file, "new")
    assert file.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["x.json"]
    assert "the kernel's log" in caught.value.remedy


def test_failures_are_censored_in_latencies_only(mixed):
    assert to_series(mixed, METRICS["T4"]).values[0] == CENSORED
    assert to_series(mixed, METRICS["T1"]).values == (CENSORED, 14.123456789012344)
    assert to_series(mixed, METRICS["T5"]).values == (0.07,)
    assert to_series(mixed, METRICS["T3"]).values == ()
    assert to_series(mixed, METRICS["T1"]).covariates[PLANNED_DURATION][1] == 1920.0
    assert invalid_trials(mixed, METRICS["T2"]) == {1: "3 events lost"}
    assert missing_reasons(mixed, METRICS["T1"]) == {1: "never"}


def test_latency_without_success_is_not_measured(mixed):
    assert to_series(mixed, METRICS["T1mean"]).values == ()
    assert to_series(trial_set([failed_trial(0)]), METRICS["T1mean"]).values == (CENSORED,)


def test_scenarios_of_one_name_get_separate_folders(tmp_path):
    run = new_run_folder(tmp_path)
    names = [new_scenario_folder(run, "msg_load").path.name for _ in range(3)]
    assert names == ["msg_load", "msg_load-2", "msg_load-3"]
    assert new_scenario_folder(run, "../../etc").path.parent == run
    assert (tmp_path / ".gitignore").read_text() == "*\n"


def test_run_folders_sort_by_time_and_are_unique(tmp_path):
    assert len({new_run_folder(tmp_path) for _ in range(20)}) == 20


def test_full_disk_error_names_the_run(tmp_path, monkeypatch):
    def fail(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(NotWritten) as raised:
        new_run_folder(tmp_path)
    assert raised.value.message.startswith(f"{tmp_path}/runs/")
    assert raised.value.remedy.endswith("name another place with --ldos-output")


@pytest.mark.parametrize(
    ("policy", "regressed", "failures", "kept"),
    [
        (KeepTraces.FAILED, False, 0, False),
        (KeepTraces.FAILED, True, 0, True),
        (KeepTraces.FAILED, False, 1, True),
        (KeepTraces.ALL, False, 0, True),
        (KeepTraces.NONE, True, 1, False),
    ],
)
def test_kept_traces(policy, regressed, failures, kept):
    assert is_worth_keeping(noisy_set(1, failures=failures), regressed=regressed, policy=policy) is kept


def make_trace(output, run: str, size: int):
    folder = output / "runs" / run / "baseline" / "trace"
    folder.mkdir(parents=True)
    (folder / "stream").write_bytes(b"x" * size)
    return folder


def test_oldest_traces_are_deleted_first(tmp_path):
    old, middle, new = (make_trace(tmp_path, name, 1000) for name in ("20260101", "20260102", "20260103"))
    dropped = enforce_disk_limit(tmp_path, limit_bytes=2500, keep=tmp_path / "runs/20260103")
    assert dropped == [old]
    assert [trace.exists() for trace in (old, middle, new)] == [False, True, True]
    dropped = enforce_disk_limit(tmp_path, limit_bytes=10, keep=tmp_path / "runs/20260103")
    assert dropped == [middle]
    assert new.exists()


def test_numbers_keep_full_precision(mixed):
    assert "14.123456789012344" in encode_trials(mixed)
    assert json.loads(encode_trials(mixed))["kind"] == "pytest-ldos trials"


def test_missing_trials_are_refused(tmp_path):
    with pytest.raises(RecordUnreadable, match=r"nothing.json cannot be read: No such file"):
        read_trials(tmp_path / "nothing.json")


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_record_of_an_earlier_version_is_refused(mixed, tmp_path, version):
    document = {**json.loads(encode_trials(mixed)), "schema": version}
    with pytest.raises(RecordUnreadable, match=f"has schema version {version}, .* reads 5") as caught:
        decode_trials(json.dumps(document), tmp_path)
    assert caught.value.remedy == "record it again with --ldos-update-baseline"


OWN = Metric(name="plan_points", title="points of the plan", unit="", better=Better.HIGHER, adjust_for=("cpu_work_ms",))


def test_record_describes_its_metrics(tmp_path):
    own = trial_set([trial(0, {"T1": 14.0, "plan_points": 10.0})], metrics=(*OURS, OWN))
    read = decode_trials(encode_trials(own), tmp_path)
    assert read == own
    assert read.metrics[-1] == OWN
    assert to_series(read, read.metrics[-1]).better is Better.HIGHER


def test_unused_newer_fields_are_omitted(tmp_path):
    """Older versions can then read the record."""
    usual = json.loads(encode_trials(trial_set([trial(0, {"T1": 14.0})])))
    assert not any("asked_as" in each for each in usual["metrics"])
    assert not {"cpu_waste", "leak_mb"} & set(usual["spec"]["stack"]["faults"])
    leaking = ScenarioSpec(name="baseline", stack=StackSpec(faults=FaultSpec(leak_mb=0.5)))
    asked = dataclasses.replace(OWN, name="cpu_planner", asked_as="cpu:planner")
    both = trial_set([trial(0, {"cpu_planner": 1.0})], metrics=(*OURS, asked), spec=leaking)
    assert decode_trials(encode_trials(both), tmp_path) == both


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda document: document["metrics"].pop(), "does not say what plan_points is"),
        (lambda document: document["metrics"].append(document["metrics"][0]), "describes a metric twice"),
        (lambda document: document["metrics"][-1].update(unit="parsec"), "unknown unit: 'parsec'"),
        (lambda document: document["metrics"][-1].update(better=None), "better is no Better"),
        (lambda document: document["metrics"][-1].update(name="plan points"), "cannot name a metric"),
        (lambda document: document["metrics"][-1].update(title="a\x1b[2J"), "no single line"),
        (lambda document: document["metrics"][-1].pop("title"), "title"),
        (lambda document: document["metrics"][-1].update(weight=3), "weight"),
        (lambda document: document.update(metrics="T1"), "is damaged"),
    ],
)
def test_damaged_descriptions_are_refused(tmp_path, change, message):
    own = trial_set([trial(0, {"plan_points": 10.0})], metrics=(*OURS, OWN))
    document = json.loads(encode_trials(own))
    change(document)
    with pytest.raises(RecordUnreadable, match=f"is damaged .*{message}" if message != "is damaged" else message):
        decode_trials(json.dumps(document), tmp_path)


def changed_in(part, **changes):
    """Changes the document's first trial, look, load or metric."""

    def change(document):
        (document[part][0] if part else document).update(changes)

    return change


def value_of(value):
    def change(document):
        document["trials"][0]["measurements"]["T1"]["value"] = value

    return change


LOOKED_TWICE = [{"head": 5, "base": 5}, {"head": 5, "base": 5}]
DESCENDING = [{"head": 10, "base": 10}, {"head": 5, "base": 5}]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed_in("", looks=LOOKED_TWICE), "looks do not ascend: 5 and 5"),
        (changed_in("", looks=DESCENDING), "looks do not ascend: 5 and 5"),
        (changed_in("looks", head="5"), r"looks\[0\].head is '5'"),
        (changed_in("looks", head=5.5), r"looks\[0\].head is 5.5"),
        (changed_in("looks", base=-5), "a look is -5"),
        (changed_in("looks", base=True), r"looks\[0\].base is True"),
        (changed_in("", last_look={"head": None, "base": 10}), "last_look.head is None"),
        (changed_in("", last_look={}), "missing 2 required"),
        (changed_in("metrics", error_share="0.1"), "error_share"),
        (changed_in("metrics", error_share=-0.1), "error_share"),
        (changed_in("metrics", error_share=True), "error_share"),
        (changed_in("trials", block=None), r"trials\[0\].block is None"),
        (changed_in("trials", block=-1), "block of a trial is -1"),
        (changed_in("trials", block=2**70), "block is a number of more than 64 bits"),
        (changed_in("trials", index="x"), r"trials\[0\].index is 'x'"),
        (changed_in("trials", index=-1), "index of a trial is -1"),
        (changed_in("trials", goal=7), r"trials\[0\].goal is 7"),
        (changed_in("trials", plan_duration_ns="x"), "plan_duration_ns is 'x'"),
        (changed_in("trials", plan_duration_ns=10**400), "plan_duration_ns is a number of more than 64 bits"),
        (changed_in("trials", plan_duration_ns=-1), "plan_duration_ns of a trial is -1"),
        (changed_in("trials", cpu_work_ns=1.5), "cpu_work_ns is 1.5"),
        (changed_in("trials", interference={"seconds": 1.0}), "missing 1 required"),
        (changed_in("trials", interference={"seconds": -1.0, "cpus": 2}), "seconds of an interference is -1.0"),
        (changed_in("", surroundings={"seconds": 1.0, "cpus": 2, "programs": {"x": -2.0}}), "programs .* is -2.0"),
        (changed_in("trials", segments_ns={"path": {"segment": "long"}}), "segment.* is 'long'"),
        (changed_in("trials", stamps_ns={"planning": None}), "stamps_ns.* is None"),
        (changed_in("trials", position_error_m=float("nan")), "position_error_m is nan"),
        (changed_in("", session=None), "session is None"),
        (changed_in("", incomplete=["died"]), "incomplete is"),
        (changed_in("", discarded_events="none"), "discarded_events is 'none'"),
        (changed_in("", loads=["full"]), r"loads\[0\] is 'full'"),
        (changed_in("", loads=[{"summary": "x"}]), "shortfall of a load is None"),
        (changed_in("", loads=[{"shortfall": ""}]), "summary of a load is None"),
        (lambda document: document["fingerprint"].update(cpu_model=None), "cpu_model is None"),
        (lambda document: document["spec"].update(trials=2.5), "spec.trials is 2.5"),
        (value_of(10**400), "a measured value is a number of more than 64 bits"),
        (value_of("14.0"), "a measured value is '14.0'"),
        (value_of(True), "a measured value is True"),
    ],
)
def test_impossible_records_are_refused_with_a_reason(tmp_path, change, message):
    looked = noisy_set(1, looks=(Look(5, 5), Look(10, 10)), last_look=Look(20, 20))
    document = json.loads(encode_trials(looked))
    change(document)
    with pytest.raises(RecordUnreadable, match=f"here.json is damaged .*{message}") as caught:
        decode_trials(json.dumps(document), tmp_path / "here.json")
    assert "--ldos-update-baseline" in caught.value.remedy


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, '{"value": ' + "1" * 5000 + "}"])
def test_invalid_json_numbers_are_refused(tmp_path, text):
    with pytest.raises(RecordUnreadable, match=r"here\.json is no JSON"):
        decode_trials(text, tmp_path / "here.json")


def test_looks_and_loads_round_trip(tmp_path):
    loads = ({"kind": "dds_flood", "seconds": 3.5, "shortfall": "", "summary": "x", "block": 0},)
    looked = noisy_set(1, looks=(Look(5, 0), Look(5, 5), Look(10, 10)), last_look=Look(20, 20), loads=loads)
    assert decode_trials(encode_trials(looked), tmp_path) == looked


@pytest.mark.parametrize("name", ["..", "../../up", "/etc/passwd", ".hidden", "a/../b", "a\0b"])
@pytest.mark.parametrize("place", ["stack_kind", "scenario"])
def test_names_with_path_components_are_refused(mixed, tmp_path, place, name):
    document = json.loads(encode_trials(mixed))
    if place == "scenario":
        document["spec"]["name"] = name
    else:
        document["stack_kind"] = name
    with pytest.raises(RecordUnreadable, match="cannot name a file"):
        decode_trials(json.dumps(document), tmp_path)


def test_unpaired_surrogate_is_replaced(mixed, tmp_path):
    text = encode_trials(mixed)
    read = decode_trials(text.replace('"markers"', '"\\ud83e\\uddbe \\udc80"'), tmp_path)
    sources = [each.source for trial in read.trials for each in trial.measurements.values()]
    assert "🦾 ?" in {source.name for source in sources if source is not None}


@pytest.mark.parametrize("version", [[1], {}, "5", 5.5, True])
def test_invalid_version_is_refused(mixed, tmp_path, version):
    document = {**json.loads(encode_trials(mixed)), "schema": version}
    with pytest.raises(RecordUnreadable, match="has schema version"):
        decode_trials(json.dumps(document), tmp_path)


def test_cpus_of_the_stack_round_trip(mixed, tmp_path):
    placed = [dataclasses.replace(each, placed=Placed(99, 100, is_time=True)) for each in mixed.trials]
    spec = dataclasses.replace(mixed.spec, stack=StackSpec(cpus="isolated"))
    fingerprint = dataclasses.replace(mixed.fingerprint, stack_cpus="2-3")
    trials = dataclasses.replace(mixed, trials=tuple(placed), spec=spec, fingerprint=fingerprint, other_cpus="0-1")
    text = encode_trials(trials)
    assert decode_trials(text, tmp_path) == trials
    for part, damaged in (('"on": 99', '"on": 101'), ('"on": 99', '"on": -1'), ('"whole": 100', '"whole": 0')):
        with pytest.raises(RecordUnreadable, match=r"work (on the stack's CPUs|elsewhere) is -"):
            decode_trials(text.replace(part, damaged), tmp_path)
