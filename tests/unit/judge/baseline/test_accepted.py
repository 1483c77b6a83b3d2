"""The file of accepted changes, and the comparisons to which an entry applies."""

from __future__ import annotations

from dataclasses import replace

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
from pytest_ldos.judge.baseline.key import BaselineKey
from tests.builders.accepted import accepted
from tests.builders.repository import Repository
from tests.builders.trials import noisy_set

KEY = BaselineKey("embedded", "any", "baseline")
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


def commit(repository, name) -> str:
    return repository.git("rev-parse", "--short=12", name)


def digest(repository, base, head) -> str:
    return digest_difference(repository.path, *(commit(repository, name) for name in (base, head)))


def accept(repository, slow, **changes) -> None:
    """Accepts the slow commit on main, and moves the branch on top of it."""
    difference = digest(repository, "main", slow)
    repository.git("switch", "--quiet", "main")
    append_accepted(repository.path, [accepted("T1", 0.2, **{"difference": difference, **changes})])
    repository.commit()
    repository.git("rebase", "--quiet", "main", "topic")


def found(repository, head="topic", base="main"):
    sets = [noisy_set(seed, commit=commit(repository, name)) for seed, name in ((1, head), (2, base))]
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
        (WRITTEN + 'scenario = "b"\n', "x cannot be read: Cannot overwrite a value"),
        ("# \udce4", "x cannot be read: 'utf-8' codec can't decode byte 0xe4"),
        ("a = " + "[" * 10_000, "x cannot be read: "),
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
    assert [*found(repository)] == ["T1"]


def test_entry_applies_after_a_squash_and_next_to_other_changes_of_main(repository, slow):
    accept(repository, slow)
    repository.git("switch", "--quiet", "main")
    repository.commit(other_txt="new\n")
    before = repository.git("rev-parse", "--short=12", "main")
    repository.git("cherry-pick", "topic")
    assert found(repository, head="main", base=before)
    assert find_step(repository.path, commit(repository, "main"), KEY, "T1").size == 0.2
    assert find_step(repository.path, commit(repository, "main"), KEY, "T4") is None
    assert find_step(repository.path, commit(repository, "main"), replace(KEY, scenario="cpu_load"), "T1") is None
    assert find_step(repository.path, before, KEY, "T1") is None


def test_entry_applies_to_a_merge_of_the_branch(repository, slow):
    accept(repository, slow)
    before = commit(repository, "main")
    repository.git("switch", "--quiet", "main")
    repository.git("merge", "--quiet", "--no-ff", "--message=merge", "topic")
    assert found(repository, head="main", base=before)
    assert find_step(repository.path, commit(repository, "main"), KEY, "T1")


def test_largest_of_the_entries_of_a_metric_counts(repository, slow):
    difference = digest(repository, "main", slow)
    repository.git("switch", "--quiet", "main")
    entries = [("T1", 0.3), ("T1", 0.2), ("grip_rate", -0.1), ("grip_rate", -0.4)]
    append_accepted(repository.path, [accepted(*each, difference=difference) for each in entries])
    repository.commit()
    repository.git("rebase", "--quiet", "main", "topic")
    assert {name: each.size for name, each in found(repository).items()} == {"T1": 0.3, "grip_rate": -0.4}


def test_base_that_is_no_ancestor_accepts_nothing(repository, slow):
    """The branch lacks a later change of main, and differs from it by that, too."""
    accept(repository, slow)
    assert found(repository)
    repository.git("switch", "--quiet", "main")
    repository.commit(other_txt="faster\n")
    assert found(repository) == {}
    repository.git("rebase", "--quiet", "main", "topic")
    assert found(repository)


def test_shallow_clone_accepts_nothing(repository, slow, tmp_path):
    accept(repository, slow)
    sets = [noisy_set(seed, commit=commit(repository, name)) for seed, name in ((1, "topic"), (2, "main"))]
    assert find_accepted(repository.path, *sets)
    shallow = Repository(tmp_path / "shallow")
    repository.git("clone", "--quiet", "--depth=1", "--branch=topic", f"file://{repository.path}", str(shallow.path))
    assert find_accepted(shallow.path, *sets) == {}
    assert find_step(shallow.path, sets[0].commit, KEY, "T1") is None


@pytest.mark.parametrize("kind", ["branch", "tag"])
def test_branch_or_tag_with_the_name_of_the_base_accepts_nothing(repository, slow, kind):
    """Git prefers such a name to a commit: whoever may push one would accept their own change."""
    before, difference = commit(repository, "main"), digest(repository, "main", slow)
    repository.git("switch", "--quiet", "--create=own", "main")
    append_accepted(repository.path, [accepted("T1", 9.0, difference=difference)])
    repository.commit()
    repository.git(kind, before, "own")
    assert FILE in repository.git("ls-tree", "--name-only", before), "git shows the file of the other commit"
    sets = [noisy_set(seed, commit=name) for seed, name in ((1, slow), (2, before))]
    assert find_accepted(repository.path, *sets) == {}


def test_tag_with_the_name_of_the_head_does_not_hide_its_other_lines(repository, slow):
    accept(repository, slow)
    worse = repository.commit(planner_txt=f"{SLOW}slower\n")
    repository.git("tag", worse, "topic~1")
    sets = [noisy_set(seed, commit=name) for seed, name in ((1, worse), (2, commit(repository, "main")))]
    assert find_accepted(repository.path, *sets) == {}


def test_index_is_not_read_for_an_unknown_base(repository, slow):
    accept(repository, slow)
    (repository.path / FILE).write_text("[")
    repository.git("add", FILE)
    assert find_accepted(repository.path, noisy_set(1, commit=slow), noisy_set(2, commit="")) == {}


def test_link_in_place_of_the_file_is_not_followed(repository, slow):
    difference = digest(repository, "main", slow)
    repository.git("switch", "--quiet", "main")
    written = append_accepted(repository.path, [accepted("T1", 9.0, difference=difference)])
    written.rename(repository.path / "other.toml")
    written.symlink_to("other.toml")
    repository.commit()
    repository.git("rebase", "--quiet", "main", "topic")
    with pytest.raises(RecordUnreadable, match=rf"{FILE} of {commit(repository, 'main')} cannot be read"):
        found(repository)


@pytest.mark.parametrize("name", [FILE, "arm.txt"])
def test_file_in_another_folder_is_a_difference(repository, slow, name):
    """A program could read it, whatever its name."""
    accept(repository, slow)
    (repository.path / "config").mkdir()
    (repository.path / "config" / name).write_text("delay = 1\n")
    repository.commit()
    assert found(repository) == {}


def test_submodule_that_is_ignored_elsewhere_is_a_difference(repository, slow):
    accept(repository, slow)
    assert found(repository)
    (repository.path / ".gitmodules").write_text('[submodule "arm"]\n\tpath = arm\n\turl = ../arm\n\tignore = all\n')
    for number in (1, 2):
        repository.git("update-index", "--add", "--cacheinfo", f"160000,{number:040},arm")
        repository.git("add", ".gitmodules")
        repository.git("commit", "--quiet", "--message=submodule")
    assert digest(repository, "topic~1", "topic"), "another commit of the submodule"


def test_entry_of_the_measured_version_does_not_count(repository, slow):
    append_accepted(repository.path, [accepted("T1", 0.2, difference=digest(repository, "main", slow))])
    repository.commit()
    assert found(repository) == {}
    append_accepted(repository.path, [accepted("T1", 0.2, difference=digest(repository, "main", "topic"))])
    assert found(repository) == {}, "nor does that of the work tree"
    (repository.path / FILE).write_text("[")
    repository.commit()
    assert found(repository) == {}, "it is not even read"


@pytest.mark.parametrize("changes", [{"scenario": "cpu_load"}, {"stack": "ros2-mock"}])
def test_entry_of_another_scenario_or_stack_does_not_count(repository, slow, changes):
    accept(repository, slow, **changes)
    assert found(repository) == {}


def test_later_push_needs_another_entry(repository, slow):
    accept(repository, slow)
    repository.commit(planner_txt=f"{SLOW}slower\n")
    assert found(repository) == {}


def test_next_change_needs_another_entry(repository, slow):
    accept(repository, slow)
    repository.git("switch", "--quiet", "main")
    repository.git("merge", "--quiet", "topic")
    repository.git("switch", "--quiet", "--create=next")
    repository.commit(other_txt="slow\n")
    assert found(repository, head="next") == {}
    assert found(repository, head="main") == {}, "of no difference"


@pytest.mark.parametrize(
    ("head", "base"),
    [
        ("", "{1}"),
        ("{0}", ""),
        ("{0}+", "{1}"),
        ("{0}", "{1}+"),
        ("{0}", "ffffffffffff"),
        ("topic", "main"),
        ("{0}", "main"),
    ],
)
def test_version_that_cannot_be_found_accepts_nothing(repository, slow, head, base):
    """Only a commit's own digest names it."""
    accept(repository, slow)
    known = [commit(repository, name) for name in ("topic", "main")]
    assert find_accepted(repository.path, *(noisy_set(seed, commit=name) for seed, name in enumerate(known)))
    sets = [noisy_set(seed, commit=name.format(*known)) for seed, name in ((1, head), (2, base))]
    assert find_accepted(repository.path, *sets) == {}


def test_options_are_no_commits(repository, slow, tmp_path):
    accept(repository, slow)
    main, written = commit(repository, "main"), tmp_path / "written"
    assert digest_difference(repository.path, f"--output={written}", main) == ""
    assert digest_difference(repository.path, main, f"--output={written}") == ""
    sets = noisy_set(1, commit=commit(repository, "topic")), noisy_set(2, commit=f"--output={written}")
    assert find_accepted(repository.path, *sets) == {}
    assert not list(tmp_path.glob("written*"))


@pytest.mark.parametrize("more", ["\r@@ -1 +1 @@\r", "\x0bindex 1..2\x0b", "\x00"])
def test_difference_includes_every_line(repository, slow, more):
    """Line ends other than git's begin no line that could be left out."""
    before = digest(repository, "main", slow)
    after = digest(repository, "main", repository.commit(planner_txt=f"{SLOW[:-1]}{more}\n"))
    assert after
    assert after != before
