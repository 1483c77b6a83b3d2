"""Commits in which nothing that is measured changed: by git in a checkout, and by GitHub's API; each hole is planted."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ldos.scenario.scenario_table import CiSpec
from tests.builders.asking import MAINTAINER, STRANGER, comment, labeled, pull_request
from tests.builders.ci_rooms import ROOM
from tests.builders.git import git
from tests.fakes.git_data import GitData

FILES = {
    "pyproject.toml": "[tool.ldos]\ntrials = 10\n",
    "README.md": "an arm",
    "requirements.txt": "ompl==1.7\n",
    "arm/plan.py": "plan()",
    "arm/README.md": "data of the package",
    "tests/conftest.py": "",
    "tests/scenarios/test_reach.py": "",
    "baselines/embedded/host/baseline.json": "{}",
    "docs/a.md": "a",
    "docs/conf.py": "",
    "docs/old/b.md": "b",
}


class Repository:
    """A repository with a base, and a commit with changes of it."""

    def __init__(self, folder: Path, base: str = "") -> None:
        self.folder = folder
        if not base:
            folder.mkdir()
            git(folder, "init", "--quiet", "--initial-branch=main")
            self.write(**FILES)
        self.base = base or self.commit()

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text, "utf-8")

    def link(self, name: str, target: str) -> None:
        (self.folder / name).unlink(missing_ok=True)
        (self.folder / name).symlink_to(target)

    def move(self, name: str, to: str) -> None:
        (self.folder / name).rename(self.folder / to)

    def permit(self, name: str) -> None:
        (self.folder / name).chmod(0o755)

    def submodule(self, name: str, commit: str) -> None:
        """Stages a submodule at a commit; its folder stays empty, as in a fresh clone."""
        (self.folder / name).mkdir(parents=True, exist_ok=True)
        git(self.folder, "update-index", "--add", "--cacheinfo", f"160000,{commit},{name}")

    def commit(self) -> str:
        git(self.folder, "add", "--all")
        git(self.folder, "commit", "--quiet", "--allow-empty", "-m", "x")
        return git(self.folder, "rev-parse", "HEAD").strip()

    def publish(self, data: GitData, *commits: str) -> None:
        """Lets GitHub have the commits."""
        for commit in commits:
            tree = git(self.folder, "rev-parse", f"{commit}^{{tree}}").strip()
            data.commits[commit] = {"message": "x", "tree": tree, "parents": []}
            entries = git(self.folder, "ls-tree", "-r", commit).splitlines()
            data.trees[tree] = {}
            for facts, path in (each.split("\t") for each in entries):
                mode, kind, found = facts.split()
                data.trees[tree][path] = (mode, found)
                if kind == "blob" and found not in data.blobs:
                    data.blobs[found] = git(self.folder, "cat-file", "blob", found).encode()


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    return Repository(tmp_path_factory.mktemp("template") / "arm")


@pytest.fixture
def repository(template, tmp_path):
    shutil.copytree(template.folder, tmp_path / "arm", symlinks=True)
    return Repository(tmp_path / "arm", template.base)


@pytest.fixture(params=["git", "GitHub"])
def look(request, repository, module_of, github, capsys, monkeypatch):
    """Compares two commits in one of the two ways; returns what was found, and what was printed."""

    def by_git(base: str, head: str) -> tuple[str, str]:
        program = [sys.executable, "-I", str(ROOM / "unchanged.py"), base, head]
        done = subprocess.run(program, cwd=repository.folder, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode in {0, 1}, done.stderr
        return (done.stdout, "") if done.returncode == 0 else ("", done.stdout)

    def by_api(base: str, head: str) -> tuple[str, str]:
        api = module_of("github_api")
        monkeypatch.setattr(api, "PAUSES_S", ())
        repository.publish(github.git, base, head)
        asked = api.Api(github.url, "arm-makers/arm", "ghs_secret0123456789")
        return module_of("reuse").find_unchanged(asked, base, head), capsys.readouterr().err

    monkeypatch.setenv("no_proxy", "*")
    return by_git if request.param == "git" else by_api


def nothing(repository: Repository) -> None:
    """An empty commit."""


LEFT_OUT = {
    "nothing": nothing,
    "a document": lambda at: at.write(**{"docs/a.md": "changed"}),
    "a new document": lambda at: at.write(**{"docs/new/deep/c.svg": "c"}),
    "a document that is gone": lambda at: (at.folder / "docs/old/b.md").unlink(),
    "a document that is renamed": lambda at: at.move("docs/a.md", "docs/b.md"),
    "the README": lambda at: at.write(**{"README.md": "changed"}),
}


@pytest.mark.parametrize("change", LEFT_OUT.values(), ids=LEFT_OUT)
def test_change_that_is_left_out(repository, look, change):
    change(repository)
    found, _ = look(repository.base, repository.commit())
    words, digests = found.strip().split(": ")
    digest, of_base = digests.removeprefix("digest ").split(", base's ")
    assert (words, digest) == ("nothing that is measured changed", of_base)
    assert len(digest) == 12


COUNTED = {
    "a source": lambda at: at.write(**{"arm/plan.py": "plan(); plan()"}),
    "a new source": lambda at: at.write(**{"arm/new.py": ""}),
    "a scenario": lambda at: at.write(**{"tests/scenarios/test_reach.py": "#"}),
    "a conftest": lambda at: at.write(**{"tests/conftest.py": "#"}),
    "a conftest among documents": lambda at: at.write(**{"docs/conftest.py": "#"}),
    "a baseline": lambda at: at.write(**{"baselines/embedded/host/baseline.json": "{ }"}),
    "settings": lambda at: at.write(**{"pyproject.toml": "[tool.ldos]\ntrials = 1\n"}),
    "requirements": lambda at: at.write(**{"requirements.txt": "ompl==1.6\n"}),
    "README as data of a package": lambda at: at.write(**{"arm/README.md": "changed"}),
    "a source that becomes a document": lambda at: at.move("arm/plan.py", "docs/plan.py"),
    "a document that becomes a source": lambda at: at.move("docs/conf.py", "arm/conf.py"),
    "a ROS package among documents": lambda at: at.write(**{"docs/x/package.xml": "", "docs/x/CMakeLists.txt": ""}),
    "mode of a source": lambda at: at.permit("arm/plan.py"),
    "mode of a document": lambda at: at.permit("docs/a.md"),
    "a document that becomes a link": lambda at: at.link("docs/a.md", "../arm/plan.py"),
    "a submodule": lambda at: at.submodule("docs/theme", "1f" * 20),
    "the list itself": lambda at: at.write(**{"pyproject.toml": '[tool.ldos.ci]\npaths = ["**"]\n'}),
    "the list, with what it would leave out": lambda at: at.write(
        **{"pyproject.toml": '[tool.ldos.ci]\npaths = ["**"]\n', "arm/plan.py": "plan(); plan()"}
    ),
    "a list in a new file": lambda at: at.write(**{"ldos.toml": '[ci]\npaths = ["**"]\n', "arm/plan.py": "#"}),
}


@pytest.mark.parametrize("change", COUNTED.values(), ids=COUNTED)
def test_change_that_counts(repository, look, change):
    change(repository)
    found, printed = look(repository.base, repository.commit())
    assert found == ""
    assert "it has to be measured: '" in printed
    assert " changed" in printed


LINKS = {
    "to a document": ("arm/notes.md", "../docs/a.md"),
    "to a folder of documents": ("arm/notes", "../docs"),
    "to a folder above": ("arm/all", "../docs/../"),
    "to the root": ("arm/all", ".."),
    "by way of another link": ("arm/notes", "../docs/old/../a.md"),
    "out of the repository": ("arm/data", "../../elsewhere"),
    "to an absolute path": ("arm/data", "/etc/hostname"),
}


@pytest.mark.parametrize(("name", "target"), LINKS.values(), ids=LINKS)
def test_document_that_what_counts_may_read(repository, look, name, target):
    repository.link(name, target)
    base = repository.commit()
    repository.write(**{"docs/a.md": "changed"})
    found, printed = look(base, repository.commit())
    assert found == ""
    assert f"{name} is a link that may lead to something that changed" in printed


def test_link_to_what_counts(repository, look):
    """A link is measured like a source: its change counts, and what it leads to counts by itself."""
    repository.link("docs/x", "../arm/plan.py")
    base = repository.commit()
    repository.write(**{"docs/a.md": "changed"})
    head = repository.commit()
    assert look(base, head)[0]
    repository.link("docs/x", "../requirements.txt")
    assert "docs/x changed" in look(base, repository.commit())[1]


def test_files_of_a_submodule_are_not_seen(repository, look):
    git(repository.folder, "rm", "--quiet", "--cached", "docs/old/b.md")
    (repository.folder / "docs/old/b.md").unlink()
    repository.submodule("arm/vendor", "1f" * 20)
    base = git(repository.folder, "commit-tree", "-m", "x", git(repository.folder, "write-tree").strip()).strip()
    repository.write(**{"README.md": "changed"})
    git(repository.folder, "add", "README.md")
    head = git(repository.folder, "commit-tree", "-m", "x", git(repository.folder, "write-tree").strip()).strip()
    assert "arm/vendor is a submodule" in look(base, head)[1]


@pytest.mark.parametrize(
    ("name", "text", "changed", "is_left_out"),
    [
        ("ldos.toml", '[ci]\npaths = ["arm/*.md"]\n', "arm/README.md", True),
        ("ldos.toml", '[ci]\npaths = ["arm/*.md"]\n', "README.md", False),
        ("pyproject.toml", '[tool.ldos.ci]\npaths = ["**/*.md"]\n', "arm/README.md", True),
        ("pyproject.toml", '[tool.ldos.ci]\npaths = ["**/*.md"]\n', "README.md", True),
        ("pyproject.toml", '[tool.ldos.ci]\npaths = ["docs/?.md"]\n', "docs/old/b.md", False),
        ("pyproject.toml", "[tool.ldos.ci]\npaths = []\n", "README.md", False),
        ("pyproject.toml", "[tool.ldos.ci]\npaths = 'README.md'\n", "README.md", False),
        ("pyproject.toml", "[tool.ldos.ci]\npaths = [1]\n", "README.md", False),
        ("pyproject.toml", "[tool\n", "README.md", False),
        ("pyproject.toml", "tool = 1\n", "README.md", False),
    ],
)
def test_paths_of_the_base(repository, look, name, text, changed, is_left_out):
    repository.write(**{name: text})
    base = repository.commit()
    repository.write(**{changed: "changed"})
    found, printed = look(base, repository.commit())
    assert bool(found) is is_left_out, printed


def test_default_is_that_of_the_settings(module_of):
    assert CiSpec().paths == module_of("unchanged").DEFAULT


def test_project_in_a_folder(repository):
    """Its own settings count; what is outside of it always counts."""
    repository.write(**{"cell/pyproject.toml": '[tool.ldos.ci]\npaths = ["*.md"]\n', "cell/README.md": ""})
    base = repository.commit()
    program = [sys.executable, "-I", str(ROOM / "unchanged.py"), base]
    statuses = []
    for name in ("cell/README.md", "README.md"):
        repository.write(**{name: "changed"})
        done = subprocess.run([*program, repository.commit()], cwd=repository.folder / "cell", timeout=300, check=False)
        statuses.append(done.returncode)
    assert statuses == [0, 1]


@pytest.mark.parametrize("names", [("HEAD", "nowhere"), ("--help", "HEAD"), ("HEAD", "HEAD:docs")])
def test_unreadable_commit_has_to_be_measured(repository, names):
    program = [sys.executable, "-I", str(ROOM / "unchanged.py"), *names]
    done = subprocess.run(program, cwd=repository.folder, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout[:24]) == (1, "it has to be measured: '")


@pytest.fixture
def opened(repository, github):
    """A pull request that changes a document alone; returns it."""

    def open_one(change=LEFT_OUT["a document"], **kinds):
        change(repository)
        head = repository.commit()
        repository.publish(github.git, repository.base, head)
        return github.open(7, head, repository.base, **kinds)

    return open_one


@pytest.fixture
def decide(run_program, tmp_path):
    """Lets the program decide about an event; returns the outputs for the next jobs."""

    def run(event: str, payload) -> str:
        (tmp_path / "event.json").write_text(json.dumps(payload), "utf-8")
        (tmp_path / "output").write_text("", "utf-8")
        done = run_program(
            *("decide", "--repository", "arm-makers/arm", "--scenarios", "baseline"),
            GITHUB_EVENT_NAME=event,
            GITHUB_EVENT_PATH=str(tmp_path / "event.json"),
            GITHUB_OUTPUT=str(tmp_path / "output"),
            GITHUB_REPOSITORY="arm-makers/arm",
            GITHUB_RUN_ID="99",
            LDOS_MAINTAINERS=f'["{MAINTAINER}"]',
        )
        assert done.returncode == 0, done.stderr
        return (tmp_path / "output").read_text("utf-8")

    return run


@pytest.mark.parametrize(("fork", "sender"), [(False, MAINTAINER), (True, STRANGER)])
def test_pull_request_without_a_change_that_counts_is_green(github, opened, decide, repository, fork, sender):
    found = opened(fork=fork, author=sender)
    assert decide("pull_request_target", pull_request("opened", found, sender=sender)) == ""
    state, text = github.shown(found["head"]["sha"])["ldos"]
    assert state == "success"
    assert text.startswith("nothing that is measured changed: digest ")
    assert text.endswith(f"; base {repository.base}")


@pytest.mark.parametrize("fault", ["a source", "truncated", "no tree", "no blob", "no answer"])
def test_in_doubt_a_pull_request_is_measured(github, opened, decide, fault):
    found = opened(COUNTED[fault] if fault in COUNTED else LEFT_OUT["a document"])
    if fault == "truncated":
        github.git.longest = 3
    elif fault == "no tree":
        github.git.trees.clear()
    elif fault == "no blob":
        github.git.blobs.clear()
    elif fault == "no answer":
        github.failures["GET git/"] = 500
    assert f"commit={found['head']['sha']}\n" in decide("pull_request_target", pull_request("opened", found))
    assert github.shown(found["head"]["sha"])["ldos"][0] == "pending"


@pytest.mark.parametrize("asks", [labeled, lambda found: comment(found, f"/ldos {found['head']['sha']}")])
def test_maintainers_word_measures_it_all_the_same(github, opened, decide, asks):
    found = opened()
    event = "issue_comment" if asks is not labeled else "pull_request_target"
    assert f"commit={found['head']['sha']}\n" in decide(event, asks(found))
    assert github.shown(found["head"]["sha"])["ldos"][0] == "pending"


@pytest.mark.parametrize("state", ["failure", "pending"])
def test_verdict_of_a_measurement_stays(github, opened, decide, repository, state):
    found = opened()
    words = "regressed" if state == "failure" else "waits for the machine"
    github.add_status(found["head"]["sha"], state, f"{words}; base {repository.base}")
    decide("pull_request_target", pull_request("reopened", found))
    assert github.shown(found["head"]["sha"])["ldos"][0] == state


def test_commit_of_two_bases_is_not_green(github, opened, decide):
    found = opened()
    github.open(8, found["head"]["sha"], "2e" * 20, fork=True)
    decide("pull_request_target", pull_request("opened", found))
    assert github.shown(found["head"]["sha"])["ldos"][0] == "error"


@pytest.mark.parametrize("change", ["a document", "a source"])
def test_merge_group(github, opened, repository, run_program, tmp_path, change):
    """Its base is what the queue says; the status of its pull request is another one's."""
    group = opened({**LEFT_OUT, **COUNTED}[change])["head"]["sha"]
    of_group = ("--repository", "arm-makers/arm", "--commit", group)
    queue = f"gh-readonly-queue/main/pr-7-{repository.base}"
    (tmp_path / "output").write_text("", "utf-8")
    run_program("reuse", *of_group, "--ref", f"refs/heads/{queue}", GITHUB_OUTPUT=str(tmp_path / "output"))
    is_unchanged = change == "a document"
    assert (tmp_path / "output").read_text("utf-8") == f"measured={'true' if is_unchanged else 'false'}\n"
    run_program("conclude", tmp_path / "received", *of_group, "--ref", queue, "--result", "success")
    state, text = github.shown(group)["ldos"]
    assert state == ("success" if is_unchanged else "error")
    assert text.startswith("nothing that is measured changed") is is_unchanged
