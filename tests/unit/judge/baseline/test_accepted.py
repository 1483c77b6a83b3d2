"""The file of accepted changes, and the comparisons to which an entry applies."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.judge.baseline.accepted import (
    FILE,
    append_accepted,
    digest_difference,
    find_accepted,
    find_step,
    parse_accepted,
    read_accepted,
)
from tests.builders.accepted import accepted
from tests.builders.repository import Repository
from tests.builders.trials import noisy_set

SLOW = "one\ntwo\nthree\nslow\n"


@pytest.fixture
def repository(tmp_path) -> Repository:
    made = Repository.create(tmp_path / "repository")
    made.commit(planner_txt="one\ntwo\nthree\n", other_txt="as ever\n")
    return made


@pytest.fixture
def slow(repository) -> str:
    """A commit on a branch of its own."""
    repository.git("switch", "--quiet", "--create=topic")
    return repository.commit(planner_txt=SLOW)


def accept(repository, slow, **changes) -> None:
    """Accepts the slow commit on main, and moves the branch on top of it."""
    difference = digest_difference(repository.path, "main", slow)
    repository.git("switch", "--quiet", "main")
    append_accepted(repository.path, [accepted("T1", 0.2, **{"difference": difference, **changes})])
    repository.commit()
    repository.git("rebase", "--quiet", "main", "topic")


def found(repository, head="topic", base="main"):
    sets = [
        noisy_set(seed, commit=repository.git("rev-parse", "--short=12", name)) for seed, name in ((1, head), (2, base))
    ]
    return find_accepted(repository.path, *sets)


def test_entries_are_read_as_they_were_written(tmp_path):
    first = accepted("T1", 0.123456789, reason='"twice" \\ = [x]\n#', by="Zoë 🤖")
    second = accepted("success_rate", 1e-05)
    append_accepted(tmp_path, [first])
    file = append_accepted(tmp_path, [second])
    assert file == tmp_path / FILE
    assert read_accepted(tmp_path) == (first, second)
    assert (tmp_path / FILE).read_text("utf-8").startswith("# ")


def test_no_file_accepts_nothing(tmp_path):
    assert read_accepted(tmp_path) == ()


def test_comments_are_kept(tmp_path):
    (tmp_path / FILE).write_text("# Ask Ada.")
    append_accepted(tmp_path, [accepted("T1", 0.5)])
    assert (tmp_path / FILE).read_text().startswith("# Ask Ada.\n[[accepted]]\n")


WRITTEN = '[[accepted]]\nscenario = "a"\n'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[[accepted]]\nsize = nil\n", "x cannot be read: Invalid value"),
        (WRITTEN, "x cannot be read: accepted[0] has not exactly the fields of a Accepted"),
        ("accepted = 1\n", "x cannot be read: accepted is no list"),
        ("[[acepted]]\n", "x cannot be read: unknown table in x: 'acepted'"),
        ("<<<<<<< main\n", "x has an unresolved merge conflict (line 1)"),
    ],
)
def test_damaged_text_is_refused(text, reason):
    with pytest.raises(RecordUnreadable) as refused:
        parse_accepted(text, "x")
    assert refused.value.message.startswith(reason)
    assert refused.value.remedy


@pytest.mark.parametrize("size", ["inf", "nan", '"0.1"', "true"])
def test_size_is_a_finite_number(tmp_path, size):
    append_accepted(tmp_path, [accepted("T1", 0.5)])
    text = (tmp_path / FILE).read_text("utf-8").replace("size = 0.5", f"size = {size}")
    with pytest.raises(RecordUnreadable, match=r"accepted\[0\]\.size is"):
        parse_accepted(text, "x")


def test_damaged_file_is_not_overwritten(tmp_path):
    (tmp_path / FILE).write_text(WRITTEN)
    with pytest.raises(RecordUnreadable, match=FILE):
        append_accepted(tmp_path, [accepted("T1", 0.5)])
    assert (tmp_path / FILE).read_text() == WRITTEN


def test_entry_applies_to_the_branch_on_top_of_it(repository, slow):
    accept(repository, slow)
    assert [each.metric for each in found(repository)] == ["T1"]


def test_entry_applies_after_a_squash_and_next_to_other_changes_of_main(repository, slow):
    accept(repository, slow)
    repository.git("switch", "--quiet", "main")
    repository.commit(other_txt="new\n")
    before = repository.git("rev-parse", "--short=12", "main")
    repository.git("cherry-pick", "topic")
    assert found(repository, head="main", base=before)
    assert find_step(repository.path, "main", read_accepted(repository.path)).metric == "T1"
    assert find_step(repository.path, "main^", read_accepted(repository.path)) is None


def test_entry_of_the_measured_version_does_not_count(repository, slow):
    difference = digest_difference(repository.path, "main", slow)
    append_accepted(repository.path, [accepted("T1", 0.2, difference=difference)])
    repository.commit()
    assert digest_difference(repository.path, "main", "topic") == difference, "the file itself is no difference"
    assert found(repository) == ()


@pytest.mark.parametrize("changes", [{"scenario": "cpu_load"}, {"stack": "ros2-mock"}])
def test_entry_of_another_scenario_or_stack_does_not_count(repository, slow, changes):
    accept(repository, slow, **changes)
    assert found(repository) == ()


def test_later_push_needs_another_entry(repository, slow):
    accept(repository, slow)
    repository.commit(planner_txt=f"{SLOW}slower\n")
    assert found(repository) == ()


def test_next_change_needs_another_entry(repository, slow):
    accept(repository, slow)
    repository.git("switch", "--quiet", "main")
    repository.git("merge", "--quiet", "topic")
    repository.git("switch", "--quiet", "--create=next")
    repository.commit(other_txt="slow\n")
    assert found(repository, head="next") == ()
    assert found(repository, head="main") == (), "of no difference"


@pytest.mark.parametrize(
    ("head", "base"), [("", "main"), ("topic", ""), ("topic+", "main"), ("topic", "main+"), ("topic", "ffffffffffff")]
)
def test_version_that_cannot_be_found_accepts_nothing(repository, slow, head, base):
    accept(repository, slow)
    sets = [noisy_set(seed, commit=name) for seed, name in ((1, head), (2, base))]
    assert find_accepted(repository.path, noisy_set(1, commit="topic"), noisy_set(2, commit="main"))
    assert find_accepted(repository.path, *sets) == ()


def test_options_are_no_commits(repository, slow, tmp_path):
    accept(repository, slow)
    written = tmp_path / "written"
    assert digest_difference(repository.path, f"--output={written}", "main") == ""
    assert (
        find_accepted(repository.path, noisy_set(1, commit="topic"), noisy_set(2, commit=f"--output={written}")) == ()
    )
    assert not list(tmp_path.glob("written*"))


@pytest.mark.parametrize("more", ["\r@@ -1 +1 @@\r", "\x0bindex 1..2\x0b", "\x00"])
def test_difference_includes_every_line(repository, slow, more):
    """Line ends other than git's begin no line that could be left out."""
    before = digest_difference(repository.path, "main", slow)
    after = digest_difference(repository.path, "main", repository.commit(planner_txt=f"{SLOW[:-1]}{more}\n"))
    assert after
    assert after != before
