"""The allow-list: what is not as it should be allows nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.runner.allow_list import EVENTS, parse_allow_list
from lab.runner.refusal import Refused
from tests.builders.runner import ALLOW_LIST

EXAMPLE = Path(__file__).parents[3] / "lab" / "runner" / "runner.toml"


def test_example_is_valid_and_allows_no_repository():
    allowed = parse_allow_list(EXAMPLE.read_bytes())
    assert parse_allow_list(b"\xef\xbb\xbf" + EXAMPLE.read_bytes()) == allowed
    assert {rule.event for rule in allowed.rules} == {*EVENTS}
    assert {rule.repository_id for rule in allowed.rules} == {0}
    assert not any(rule.unprotected for rule in allowed.rules)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('event = "push"', 'event = "pull_request"', r"names the event 'pull_request'; only push, merge_group"),
        (
            'event = "push"',
            'event = "pull_request_review"',
            "dispatch, pull_request_target, issue_comment can be allowed",
        ),
        ('event = "push"', 'event = "pull_request_review_comment"', "can be allowed"),
        ('event = "push"', 'event = "workflow_run"', "can be allowed"),
        ('event = "push"', 'event = "schedule"', "can be allowed"),
        ('event = "push"', 'event = "repository_dispatch"', "can be allowed"),
        ('event = "push"', 'event = "push"\nactors = ["a"]', r"\[\[allow\]\] of push cannot have actors"),
        ('event = "push"', 'event = "push"\nown_commit = true', "of push cannot have own_commit"),
        ('event = "push"', 'event = "push"\nunprotected = "yes"', "unprotected of the allow-list is not of type bool"),
        ('event = "push"', 'event = "push"\nunprotected = 1', "unprotected of the allow-list is not of type bool"),
        ('"merge_group"', '"merge_group"\nunprotected = true', "of merge_group cannot have unprotected"),
        ('"merge_group"', '"merge_group"\nactors = ["a"]', "of merge_group cannot have actors"),
        (
            "own_commit = true",
            "own_commit = true\nunprotected = true",
            "which trusts a protected branch, and unprotected",
        ),
        ('"push"', '"pull_request_target"', "of pull_request_target needs actors, whose word on a commit counts"),
        ('"push"', '"issue_comment"', "of issue_comment needs actors, whose word on a commit counts"),
        ('["maintainer", "owner"]', "[]", "actors of the allow-list is empty"),
        ('["maintainer", "owner"]', '["github-actions[bot]"]', "which every writer can act as"),
        ('_target"', '_target"\nown_commit = true', "of pull_request_target cannot have own_commit"),
        ('_target"', '_target"\ninputs = { a = ["x"] }', "of pull_request_target cannot have inputs"),
        ('"issue_comment"', '"issue_comment"\nsha_input = "x"', "of issue_comment cannot have sha_input"),
        ('actors = ["maintainer"]', "", "needs either actors, who may name any commit, or own_commit = true"),
        ('actors = ["maintainer"]', "own_commit = false", "needs either actors"),
        ('actors = ["maintainer"]', 'actors = ["a"]\nown_commit = true', "needs either actors"),
        ('actors = ["maintainer"]', "actors = []", "actors of the allow-list is empty"),
        ('actors = ["maintainer"]', 'actors = ["*"]', "actors of the allow-list cannot hold"),
        ('["maintainer"]', '["maintainer", "github-actions[bot]"]', "which every writer can act as"),
        ('actors = ["maintainer"]', 'actors = ["a"]\ninputs = { what = ["x"] }', "inputs without own_commit"),
        ('what = ["sweep", "breaking"]', 'what = "sweep"', "what of the allow-list is not of type list"),
        ("own_commit = true", 'own_commit = "yes"', "own_commit of the allow-list is not of type bool"),
        ('event = "push"\n', "", r"\[\[allow\]\] has no event"),
        ('event = "push"', 'event = "push"\nevents = ["x"]', "unknown keys: 'events'"),
        ('refs = ["refs/heads/main"]', 'refs = ["refs/heads/*"]', "refs of the allow-list cannot hold"),
        ('refs = ["refs/heads/main"]', 'refs = ["main"]', "refs of the allow-list cannot hold"),
        ('refs = ["refs/heads/main"]', "refs = []", "refs of the allow-list is empty"),
        ('refs = ["refs/heads/main"]', 'refs = "refs/heads/main"', "refs of the allow-list is not of type list"),
        ('refs = ["refs/heads/main"]', "refs = [1]", "refs of the allow-list is no list of str"),
        ("gate.yml", "*.yml", "workflows of the allow-list cannot hold"),
        ("gate.yml", "../gate.yml", "workflows of the allow-list cannot hold"),
        ("4711", '"4711"', "repository_id of the allow-list is not of type int"),
        ("4711", "true", "repository_id of the allow-list is not of type int"),
        ("arm-makers/arm", "*/arm", "repository of the allow-list cannot be"),
        ("[machine]\nmax_busy = 1.0\n", "", "the allow-list has no machine"),
        ("max_busy = 1.0\n", "", r"\[machine\] has no max_busy"),
        ("max_busy = 1.0", "max_busy = 0", "needs 0 < max_busy"),
        ("max_busy = 1.0", "max_busy = nan", "max_busy of the allow-list is no number"),
        ("max_busy = 1.0", "max_busy = true", "max_busy of the allow-list is no number"),
        ("max_busy = 1.0", "max_busy = 1.0\nsettle_s = 1e9", "settle_s <= 600"),
        ("max_busy = 1.0", 'max_busy = 1.0\nturbo = "fast"', "it can be on or off"),
        ("max_busy = 1.0", "max_busy = 1.0\ncolour = 1", "unknown keys: 'colour'"),
        ("[machine]", 'server_url = "http://x"\n[machine]', "unknown keys: 'server_url'"),
        ("[[allow]]", "[allow]", "is no TOML|is not of type list"),
        ("[machine]", "[machine", "the allow-list is no TOML"),
    ],
)
def test_invalid_allow_list_allows_nothing(old, new, reason):
    assert old in ALLOW_LIST
    with pytest.raises(Refused, match=reason):
        parse_allow_list(ALLOW_LIST.replace(old, new).encode())


@pytest.mark.parametrize("content", [b"", b"\xff", b"allow = []\n[machine]\nmax_busy = 1\n", b"[" * 5000])
def test_invalid_allow_lists_are_refused(content):
    with pytest.raises(Refused):
        parse_allow_list(content)
