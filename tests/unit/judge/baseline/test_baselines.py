"""Finding a baseline, and the three results without one."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.host.interference import Interference
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.judge.baseline.store import BaselineStores, Found, NoBaseline, NotComparable, Unreadable, find_baseline
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.scenario.loads import CpuLimitSpec, DdsFloodSpec
from pytest_ldos.show.report.reasons import describe_reason
from tests.builders.trials import FINGERPRINT, noisy_set


@pytest.fixture
def stores(tmp_path):
    return BaselineStores(repository=tmp_path / "baselines", local=tmp_path / ".ldos/baselines")


@pytest.fixture
def elsewhere():
    return noisy_set(2, fingerprint=dataclasses.replace(FINGERPRINT, cpu_model="Another CPU"))


def test_no_baseline_yet(stores):
    assert find_baseline(stores, noisy_set(1)) == NoBaseline()


def test_a_saved_baseline_is_found_with_its_raw_trials(stores):
    base = noisy_set(1)
    file = stores.save(base, to_repository=False)
    key = BaselineKey.of(base)
    assert file == stores.local / "embedded" / key.host_class / "baseline.json"
    assert find_baseline(stores, noisy_set(2)) == Found(base, file)


def test_repository_baseline_has_precedence_over_the_machines(stores):
    stores.save(noisy_set(1), to_repository=False)
    mine = stores.save(noisy_set(2), to_repository=True)
    assert find_baseline(stores, noisy_set(3)).file == mine


def test_update_replaces_the_baseline_in_its_place(stores):
    assert stores.update(noisy_set(1)).is_relative_to(stores.local)
    stores.save(noisy_set(2), to_repository=True)
    assert stores.update(noisy_set(3)).is_relative_to(stores.repository)


def test_another_host_class_is_not_comparable_and_not_missing(stores, elsewhere):
    stores.save(elsewhere, to_repository=True)
    found = find_baseline(stores, noisy_set(1))
    assert isinstance(found, NotComparable)
    assert "another-cpu" in describe_reason(found.reason)
    assert "test-cpu" in describe_reason(found.reason)


def test_a_file_copied_from_another_host_class_is_not_comparable(stores, elsewhere):
    own = noisy_set(1)
    stores.save(elsewhere, to_repository=True)
    target = BaselineKey.of(own).file(stores.repository)
    target.parent.mkdir(parents=True)
    target.write_bytes(BaselineKey.of(elsewhere).file(stores.repository).read_bytes())
    assert isinstance(find_baseline(stores, own), NotComparable)


def under(trials, *loads):
    proofs = tuple({"kind": load.KIND, "shortfall": "", "summary": load.KIND} for load in loads)
    return dataclasses.replace(trials, spec=dataclasses.replace(trials.spec, loads=loads), loads=proofs)


def test_other_loads_are_not_comparable_and_differences_are_named(stores):
    stores.save(under(noisy_set(1), DdsFloodSpec(rate_hz=1000)), to_repository=False)
    same = find_baseline(stores, under(noisy_set(2), DdsFloodSpec(rate_hz=1000)))
    assert isinstance(same, Found)
    other = find_baseline(stores, under(noisy_set(2), DdsFloodSpec(rate_hz=2000), CpuLimitSpec()))
    assert isinstance(other, NotComparable)
    assert "dds_flood.rate_hz is 2000 here, 1000 there" in describe_reason(other.reason)
    assert "cpu_limit only here" in describe_reason(other.reason)
    assert "--ldos-update-baseline" in describe_reason(other.reason)
    assert other.is_ours, "what was recorded stays until somebody wants it replaced"


def test_damaged_baseline_is_unreadable_not_missing(stores):
    file = stores.save(noisy_set(1), to_repository=True)
    file.write_text(file.read_text()[:500])
    found = find_baseline(stores, noisy_set(2))
    assert isinstance(found, Unreadable)
    assert str(file) in found.reason


def test_runs_of_any_versions_are_comparable(stores):
    stores.save(noisy_set(1), to_repository=False)
    upgraded = dataclasses.replace(FINGERPRINT, kernel="9.9", versions={"mujoco": "9.9"}, hostname="other")
    assert isinstance(find_baseline(stores, noisy_set(2, fingerprint=upgraded)), Found)


def test_pinning_keeps_the_release_when_the_rolling_one_moves(stores):
    stores.save(noisy_set(1), to_repository=False)
    (stored,) = stores.all()
    pinned = stores.pin(stored)
    stores.save(noisy_set(2), to_repository=False)
    assert pinned.name == "baseline.pinned.json"
    assert sorted(each.is_pinned for each in stores.all()) == [False, True]
    assert stores.find(stored.key, pinned=True).file.read_text() != stores.find(stored.key).file.read_text()


def test_promotion_copies_into_the_repository(stores):
    stores.save(noisy_set(1), to_repository=False)
    (local,) = stores.all()
    promoted = stores.promote(local)
    assert promoted.is_relative_to(stores.repository)
    assert read_trials(promoted) == noisy_set(1)
    with pytest.raises(ConfigurationError, match="already"):
        stores.promote(stores.find(local.key))


def test_programs_of_the_machine_are_not_promoted(stores):
    under = Interference(seconds=2.0, cpus=2, others_s=1.0, programs={"secret-project": 1.0})
    trials = noisy_set(1)
    first = replace(trials.motions[0], interference=under)
    stores.save(
        replace(trials, trials=(first, *trials.trials[1:]), surroundings=under, repeated=(first,)), to_repository=False
    )
    promoted = stores.promote(*stores.all())
    assert "secret-project" not in promoted.read_text()
    assert read_trials(promoted).motions[0].interference == replace(under, programs={})


@pytest.mark.parametrize("name", ["..", "../../up", "/etc/passwd", ".hidden", "", "a/../../../b", "a\0b"])
def test_names_cannot_leave_the_store(tmp_path, name):
    store = tmp_path / "store"
    for key in (BaselineKey(name, "host", "s"), BaselineKey("s", name, "s"), BaselineKey("s", "host", name)):
        for file in (key.file(store), key.file(store, pinned=True), key.calibration_file(store)):
            within = file.relative_to(store).parts
            assert len(within) == 3
            assert not any(part.startswith(".") for part in within)


def test_baseline_with_a_name_like_a_path_is_found_again(stores):
    trials = noisy_set(1, stack_kind="../up", name="[a]/b")
    file = stores.save(trials, to_repository=False)
    assert file.is_relative_to(stores.local)
    assert stores.find(BaselineKey.of(trials)).file == file
    assert stores.other_host_classes(BaselineKey.of(trials)) == [trials.fingerprint.host_class]
