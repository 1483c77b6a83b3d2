"""The page of options, variables and keys."""

from __future__ import annotations

from collections.abc import Iterator

from docs.generate.text import code, shown, table, without_default
from pytest_ldos.scenario.options import OPTIONS, OTHER_VARIABLES, OWN_FILE, Option
from pytest_ldos.scenario.settings import TABLES


def options_page() -> Iterator[str]:
    """Every option of pytest with its variable and key."""
    yield from (
        "# Options, variables and keys",
        "",
        "Strongest first: command line, environment, mark of a test, `[tool.ldos.scenarios.NAME]`, `[tool.ldos]`, and",
        "the default. What is unknown or has a wrong value is refused before anything is measured.",
        "",
        "The settings of a project are in the nearest file from its tests upwards: a `pyproject.toml` with",
        f"`[tool.ldos]`, or an `{OWN_FILE}`, in which the same keys stand at the top. pytest's own root and ini file",
        "do not matter. That file's folder is the project's folder, in which `.ldos` and `baselines` lie; without such",
        "a file, it is pytest's root. The header of a run names the file. Tests of one run that lead to different",
        "files are refused. Commands look from the working directory upwards.",
        "",
        "Each is an option of pytest (`--ldos-max-trials 40`), a variable (`LDOS_MAX_TRIALS=40`) and a key",
        "(`max_trials = 40`). Those with ● can also be set for one scenario, and by the mark of a test",
        "(`@pytest.mark.baseline(trials=20)`).",
        "",
    )
    yield from table(
        ("option, variable, key", "value", "default", "meaning"),
        [_row_of(option) for option in OPTIONS.values()],
    )
    yield from ("", "Other variables of the environment:", "")
    yield from table(("variable", "meaning"), [(code(name), text) for name, text in OTHER_VARIABLES.items()])
    yield ""


def _row_of(option: Option) -> tuple[str, ...]:
    text, default = without_default(option.help)
    return (
        f"{code(f'{option.flag} {option.metavar}'.strip())} {code(option.variable)} {_key_of(option)}".strip(),
        _value_of(option),
        default or shown(option.default) or ("off" if option.is_flag else "none"),
        text,
    )


def _key_of(option: Option) -> str:
    """In TOML; ``base`` is a table there, and ``config`` says where it is."""
    if option.name == "config" or (option.name in TABLES and option.name != "stack"):
        return ""
    return code(option.name) + (" ●" if option.per_scenario else "")


def _value_of(option: Option) -> str:
    """The values that its parser takes, in its own words."""
    for impossible in (-1, object()):
        try:
            option.parse(impossible)
        except ValueError as error:
            return str(error)
    return "a text"
