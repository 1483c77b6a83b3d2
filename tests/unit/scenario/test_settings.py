"""Sources of settings, their precedence, and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.scenario.fields import parse_field, parse_value
from pytest_ldos.scenario.model import FaultSpec, ScenarioSpec, StackSpec
from pytest_ldos.scenario.options import OPTIONS, find_settings_file, settings_file_in
from pytest_ldos.scenario.settings import Sources, TomlSettings, parse_table, read_environment, read_toml
from pytest_ldos.scenario.words import SeedMode, StackKind


def sources(command_line=None, environment=None, toml=None) -> Sources:
    return Sources(command_line or {}, environment or {}, parse_table(toml or {}))


def test_source_with_the_highest_precedence_wins():
    toml = {"trials": 20, "scenarios": {"baseline": {"trials": 30}}}
    marker = {"trials": 40}
    assert sources(toml={"trials": 20}).scenario("baseline", {}).trials == 20
    assert sources(toml=toml).scenario("baseline", {}).trials == 30
    assert sources(toml=toml).scenario("cpu_load", {}).trials == 20
    assert sources(toml=toml).scenario("baseline", marker).trials == 40
    assert sources(environment={"trials": 50}, toml=toml).scenario("baseline", marker).trials == 50
    assert sources({"trials": 60}, {"trials": 50}, toml).scenario("baseline", marker).trials == 60
    assert sources().scenario("baseline", {}).trials == OPTIONS["trials"].default


def test_the_environment_is_parsed():
    assert read_environment({"LDOS_TRIALS": "7", "LDOS_STRICT": "no", "LDOS_THREADS": "2", "HOME": "/"}) == {
        "trials": 7,
        "strict": False,
    }


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"LDOS_TRIALS": "many"}, "must be a whole number"),
        ({"LDOS_TRAILS": "7"}, "did you mean 'LDOS_TRIALS'?"),
        ({"LDOS_STACK": "gazebo"}, "one of auto, embedded"),
        ({"LDOS_STRICT": "perhaps"}, "true or false"),
    ],
)
def test_invalid_environment_is_refused(environment, message):
    with pytest.raises(ConfigurationError, match=message.replace("?", r"\?")):
        read_environment(environment)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"trails": 5}, "unknown key .* 'trails'.*\n.*did you mean 'trials'"),
        ({"trials": "x"}, "must be a whole number"),
        ({"trials": True}, "must be a whole number"),
        ({"scenarios": {"baseline": {"warm_up": 1}}}, r"tool.ldos.scenarios.baseline.*\n.*did you mean 'warmup'"),
        ({"scenarios": {"baseline": 3}}, "write it as a table"),
        ({"stack": {"planing_time_s": 3}}, "did you mean 'planning_time_s'"),
        ({"stack": {"planning_time_s": "long"}}, "must be a number"),
        ({"stack": {"faults": {"planing_delay_ms": 3}}}, "did you mean 'planning_delay_ms'"),
        ({"stack": {"faults": {"planning_delay_ms": -3}}}, "between 0 and 5000"),
        ({"stack": {"faults": {"planning_delay_share": 11}}}, "planning_delay_share .* between 0 and 10"),
        ({"stack": {"faults": {"failure_rate": 30}}}, "failure_rate of a fault must be between 0 and 1"),
        ({"stack": {"faults": {"failure_rate": "often"}}}, "failure_rate is 'often'\n.*a number"),
        ({"stack": {"faults": {"cpu_steal": 1}}}, "cpu_steal of a fault must be between 0 and 0.9"),
        ({"stack": {"faults": {"cpu_steal": float("nan")}}}, "cpu_steal of a fault must be between 0 and 0.9"),
        ({"stack": {"faults": {"cpu_stea": 0.5}}}, "did you mean 'cpu_steal'"),
        ({"stack": {"faults": {"control_rate_drop": 0.95}}}, "control_rate_drop .* between 0 and 0.9"),
        ({"stack": {"faults": {"control_rate_drop": 0.1, "control_rate_hz": 400}}}, "contradict each other"),
        ({"gate": {"alhpa": 0.1}}, "did you mean 'alpha'"),
        ({"gate": {"floors": {"T1": "low"}}}, r"gate\] floors is .*low.*\n.*a table of finite numbers"),
        ({"gate": {"required": "T1"}}, "required is 'T1'\n.*must be a list of texts"),
        ({"gate": {"required": [1]}}, r"required is \[1\]\n.*must be a list of texts"),
        ({"gate": {"floors": {"T1": 15}}}, r"gate\] floors.T1 is 15, which is 1500 %\n.*write 0.15 for 15 %"),
        ({"gate": {"floors": {"T1": 5.1}}}, r"floors.T1 is 5.1"),
        ({"gate": {"relevant_effect": 10}}, r"gate\] relevant_effect is 10, which is 1000 %\n.*write 0.15 for 15 %"),
        ({"stack": 5}, "stack is 5\n.*one of auto, embedded, ros2"),
        ({"stack": "gazebo"}, "stack is 'gazebo'\n.*one of auto, embedded, ros2"),
        ({"stack": {"kind": "gazebo"}}, r"\[tool.ldos.stack\] kind is 'gazebo'\n.*one of auto, embedded, ros2"),
    ],
)
def test_invalid_table_is_refused(table, message):
    with pytest.raises(ConfigurationError, match=message):
        parse_table(table)


def test_effects_up_to_500_percent_are_accepted():
    gate = {"relevant_effect": 5, "floors": {"T1": 5.0, "T3": 0.15}}
    assert parse_table({"gate": gate}).gate == gate


def test_an_effect_in_percent_is_refused_with_its_file(tmp_path):
    (tmp_path / "ldos.toml").write_text("[gate]\nfloors = { T1 = 15 }\n")
    with pytest.raises(ConfigurationError, match=r"ldos\.toml: .*floors\.T1 is 15"):
        read_toml(tmp_path)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pyproject.toml", '[tool.ldos]\nstack = "embedded"\n'),
        ("pyproject.toml", '[tool.ldos.stack]\nkind = "embedded"\n'),
        ("ldos.toml", 'stack = "embedded"\n'),
        ("ldos.toml", '[stack]\nkind = "embedded"\n'),
    ],
)
def test_file_sets_the_stack_kind_and_other_sources_override_it(tmp_path, file, text):
    (tmp_path / file).write_text(text)
    read = read_toml(tmp_path)
    assert Sources({}, {}, read).stack_spec().kind is StackKind.EMBEDDED
    assert Sources({"stack": StackKind.ROS2}, {}, read).stack_spec().kind is StackKind.ROS2
    assert Sources({}, {"stack": StackKind.AUTO}, read).stack_spec().kind is StackKind.AUTO


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("loads = { cpu_load = { percent = 140 } }", "loads] cpu_load percent", "a CPU load of 140 %"),
        ("loads = { cpu_load = { workers = 0, percent = 140 } }", "loads] cpu_load workers", "0 workers"),
        ("loads = { cpu_load = { percent = 140, workers = 0 } }", "loads] cpu_load workers", "0 workers"),
        ("loads = { dds_flood = { publishers = 5, burst = 0 } }", "loads] dds_flood burst", "bursts of 0 messages"),
        ("loads = { dds_flood = { publishers = 5, participants = 6 } }", "loads] dds_flood", "6 participants for 5"),
        ("loads = { network_impairment = { jitter_ms = 5, delay_ms = 9, loss_percent = 200 } }", "loss_percent", "100"),
        ("loads = { cpu_limit = { cpus = 'x-2' } }", "loads] cpu_limit cpus", "cpus is 'x-2'"),
        ("deadlines = { planning = -1 }", "deadlines 'planning'", "must be above 0"),
        ("deadlines = { planning = { share = 0.9 } }", "deadlines 'planning'", "lacks ms"),
        ("success_rate = 2", "success_rate", "is 2"),
    ],
)
@pytest.mark.parametrize(("file", "prefix"), [("pyproject.toml", "tool.ldos."), ("ldos.toml", "")])
def test_invalid_value_is_named_with_file_scenario_and_key(tmp_path, file, prefix, text, place, message):
    (tmp_path / file).write_text(f"[{prefix}scenarios.busy]\n{text}\n")
    with pytest.raises(ConfigurationError) as raised:
        read_toml(tmp_path)
    reported = raised.value.message
    assert reported.startswith(f"{tmp_path / file}: [tool.ldos.scenarios.busy")
    assert place in reported
    assert message in reported


def test_contradictory_settings_are_named_with_their_scenario():
    with pytest.raises(ConfigurationError, match="scenario 'busy': max_trials is 5, less than the 10 trials"):
        sources(toml={"scenarios": {"busy": {"max_trials": 5}}}).scenario("busy", {})


def test_stack_comes_from_toml_and_its_kind_from_any_source():
    table = {"stack": {"planning_time_s": 2, "faults": {"control_rate_hz": 400}}}
    spec = sources({"stack": "embedded"}, toml=table).stack_spec()
    assert (spec.kind, spec.planning_time_s, spec.faults) == ("embedded", 2, FaultSpec(control_rate_hz=400))


def test_a_drop_of_the_control_rate_is_a_share_of_the_nominal_one():
    assert FaultSpec(control_rate_drop=0.1).control_rate_of(500) == pytest.approx(450)
    assert FaultSpec(control_rate_hz=400).control_rate_of(500) == 400
    assert FaultSpec().control_rate_of(500) == 500


def test_file_that_is_not_toml(tmp_path):
    file = tmp_path / "pyproject.toml"
    file.write_text("[tool.ldos\n")
    with pytest.raises(ConfigurationError, match="is not TOML"):
        read_toml(tmp_path)


@pytest.mark.parametrize(
    ("name", "text"), [("pyproject.toml", "[tool.ldos]\ntrials = 7\n"), ("ldos.toml", "trials = 7\n")]
)
def test_byte_order_mark_is_ignored(tmp_path, name, text):
    """As editors on Windows begin files in UTF-8."""
    (tmp_path / name).write_text(text, "utf-8-sig")
    assert read_toml(tmp_path).options == {"trials": 7}


def test_a_file_in_another_encoding(tmp_path):
    (tmp_path / "ldos.toml").write_text("trials = 7\n", "utf-16")
    with pytest.raises(ConfigurationError, match=r"is not UTF-8(.|\n)*→ save it as UTF-8"):
        read_toml(tmp_path)


def test_missing_file_means_no_settings(tmp_path):
    assert read_toml(tmp_path) == TomlSettings()
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 120\n")
    assert read_toml(tmp_path) == TomlSettings()


def test_settings_in_a_file_of_their_own(tmp_path):
    (tmp_path / "ldos.toml").write_text("trials = 7\n[scenarios.shelf]\ntrials = 3\n")
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'cell'\n")
    found = read_toml(tmp_path)
    assert found.options == {"trials": 7}
    assert found.scenarios["shelf"].options == {"trials": 3}
    (tmp_path / "cell.toml").write_text("trials = 9\n")
    assert read_toml(tmp_path, Path("cell.toml")).options == {"trials": 9}


def test_settings_in_two_places_are_refused(tmp_path):
    (tmp_path / "ldos.toml").write_text("trials = 7\n")
    (tmp_path / "pyproject.toml").write_text("[tool.ldos]\ntrials = 8\n")
    with pytest.raises(ConfigurationError, match=r"both .*ldos\.toml and .*hold settings"):
        read_toml(tmp_path)


def test_missing_named_file_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"nowhere\.toml cannot be read: No such file"):
        read_toml(tmp_path, Path("nowhere.toml"))


def test_own_scenarios_are_markers():
    assert "night" in sources(toml={"scenarios": {"night": {"trials": 3}}}).scenario_names()


@pytest.mark.parametrize(
    "arguments",
    [
        {"trials": 0},
        {"warmup": -1},
        {"success_rate": 1.5},
        {"stack": {"velocity_scaling": 0}},
        {"stack": {"control_rate_hz": 0}},
        {"stack": {"planning_time_s": 0}},
    ],
)
def test_invalid_scenarios_are_refused(arguments):
    with pytest.raises(ConfigurationError):
        ScenarioSpec(
            name="x", **{**arguments, **({"stack": StackSpec(**arguments["stack"])} if "stack" in arguments else {})}
        )


def test_seeds_are_fixed_for_each_trial_or_random():
    fixed = ScenarioSpec(name="x")
    assert [fixed.seed(index) for index in range(3)] == [1, 2, 3]
    assert ScenarioSpec(name="x", seeds=SeedMode.RANDOM).seed(0) is None


@pytest.mark.parametrize(
    ("value", "truth"), [("1", True), ("On", True), ("YES", True), (True, True), ("0", False), ("off", False)]
)
def test_options_and_fields_accept_the_same_truth_values(value, truth):
    assert parse_field(bool, value, "readers") is truth
    assert parse_value(OPTIONS["strict"], value, "strict") is truth


@pytest.mark.parametrize("value", [5, 5.0, "5", " 5 "])
def test_options_and_fields_accept_the_same_whole_numbers(value):
    assert parse_field(int, value, "depth") == 5
    assert parse_value(OPTIONS["trials"], value, "trials") == 5


@pytest.mark.parametrize("value", [5.5, "5.0", True, None, [5], "inf", float("inf")])
def test_fraction_is_refused_by_both(value):
    with pytest.raises(ConfigurationError, match="a whole number"):
        parse_field(int, value, "depth")
    with pytest.raises(ConfigurationError, match="a whole number"):
        parse_value(OPTIONS["trials"], value, "trials")


# --- the file of a project ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("[tool.ldos]\n", True),
        ("[tool.ldos.scenarios.shelf]\n", True),
        ("[tool]\nldos.trials = 3\n", True),
        ('[project]\nname = "ldos-cell"\ndependencies = ["pytest-ldos"]\n[tool.ruff]\n', False),
        ("[tool.other]\n# ldos\n", False),
        ("tool = 'ldos'\n", False),
        ("[tool.ldos\n", True),
        ("# ldos \ud800\n", True),
    ],
)
def test_file_that_has_or_may_have_the_table_is_found(tmp_path, text, is_found):
    """Reading it then reports what is wrong with it."""
    file = tmp_path / "pyproject.toml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    (tmp_path / "tests/arm").mkdir(parents=True)
    assert settings_file_in(tmp_path) == (file if is_found else None)
    assert find_settings_file(tmp_path / "tests/arm/test_reach.py") == (file if is_found else None)


def test_links_own_folder_is_searched_before_its_targets(tmp_path):
    for name in ("named", "target"):
        (tmp_path / name / "tests").mkdir(parents=True)
        (tmp_path / name / "ldos.toml").touch()
    (tmp_path / "named/linked").symlink_to(tmp_path / "target/tests")
    (tmp_path / "away").symlink_to(tmp_path / "target/tests")
    assert find_settings_file(tmp_path / "named/linked") == tmp_path / "named/ldos.toml"
    assert find_settings_file(tmp_path / "away") == tmp_path / "target/ldos.toml"
    assert find_settings_file(tmp_path / "named/tests/../../target/tests") == tmp_path / "target/ldos.toml"


def test_each_folder_is_searched_once(tmp_path):
    looked = []

    def look(folder):
        looked.append(folder)
        return settings_file_in(folder)

    assert find_settings_file(tmp_path, look) is None
    assert looked == [tmp_path, *tmp_path.parents]


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("'isolated'", "isolated"),
        ("'2-3'", "2-3"),
        ("[2, 3]", "2,3"),
        ("['0', '2-3']", "0,2-3"),
        ("{ move_group = 2, simulator = [0, 1], rest = '3' }", "move_group=2 simulator=0,1 rest=3"),
    ],
)
def test_cpus_of_the_stack_are_a_list_or_a_table_of_lists(tmp_path, text, cpus):
    (tmp_path / "ldos.toml").write_text(f"[stack]\ncpus = {text}\n")
    assert read_toml(tmp_path).stack.cpus == cpus


@pytest.mark.parametrize(
    "text", ["2", "true", "'two'", "[]", "{}", "[2.5]", "{ sim = [] }", "{ sim = {} }", "{ 'a b' = 2 }"]
)
def test_other_cpus_of_the_stack_are_refused(tmp_path, text):
    (tmp_path / "ldos.toml").write_text(f"[stack]\ncpus = {text}\n")
    with pytest.raises(ConfigurationError, match=r"ldos\.toml: .*cpus"):
        read_toml(tmp_path)
