"""List of commits to search, and refusals."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.campaign.commit_rounds import list_commits
from tests.builders.repository import Repository


@pytest.fixture
def repository(tmp_path):
    return Repository.create(tmp_path / "arm")


def refused(good, bad, root):
    with pytest.raises(ConfigurationError) as raised:
        list_commits(good, bad, root)
    return str(raised.value)


def test_commits_come_from_good_to_bad_with_date_and_subject(repository):
    names = [repository.commit(a_txt=str(number)) for number in range(4)]
    found = list_commits(names[1], "main", repository.path)
    assert [each.name for each in found] == names[1:]
    assert {each.subject for each in found} == {"change"}
    assert all(each.date.count("-") == 2 and not each.is_merge for each in found)


def test_merge_represents_its_branch(repository):
    first = repository.commit(a_txt="1")
    repository.git("checkout", "--quiet", "-b", "topic")
    repository.commit(b_txt="1")
    repository.commit(b_txt="2")
    repository.git("checkout", "--quiet", "main")
    second = repository.commit(a_txt="2")
    repository.git("merge", "--quiet", "--no-ff", "--message=merge topic", "topic")
    found = list_commits(first, "main", repository.path)
    assert [each.name for each in found[:2]] == [first, second]
    assert [(each.subject, each.is_merge) for each in found[2:]] == [("merge topic", True)]


def test_unknown_revisions_are_refused(repository):
    repository.commit(a_txt="1")
    assert "GOOD v9: there is no revision of this name" in refused("v9", "main", repository.path)
    assert "BAD v9: there is no revision of this name" in refused("main", "v9", repository.path)


def test_outside_of_a_checkout(tmp_path):
    assert "not a git repository" in refused("a", "b", tmp_path)


def test_a_dirty_work_tree_is_refused(repository):
    first = repository.commit(a_txt="1")
    repository.commit(a_txt="2")
    (repository.path / "untracked.txt").write_text("what git does not track is no change")
    assert len(list_commits(first, "main", repository.path)) == 2
    (repository.path / "a.txt").write_text("3")
    assert "the work tree has uncommitted changes" in refused(first, "main", repository.path)


def test_good_must_be_an_ancestor_of_bad(repository):
    root = repository.commit(a_txt="1")
    repository.git("checkout", "--quiet", "-b", "topic")
    repository.commit(b_txt="1")
    repository.git("checkout", "--quiet", "main")
    repository.commit(a_txt="2")
    text = refused("topic", "main", repository.path)
    assert "GOOD topic is no ancestor of BAD main" in text
    assert f"their last common ancestor is {root}: name it as GOOD" in text
    assert "exchange the two" in refused("main", root, repository.path)
    assert "GOOD and BAD are the same commit" in refused("main", "main", repository.path)
    repository.git("checkout", "--quiet", "--orphan", "other")
    repository.commit(c_txt="1")
    assert "name a GOOD that BAD descends from" in refused("main", "other", repository.path)
