"""The page as a document: complete, self-contained, accessible, and with escaped names."""

from __future__ import annotations

import dataclasses
import itertools
import re
from html.parser import HTMLParser

import pytest

from pytest_ldos.base.text import one_line
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report import html as page
from pytest_ldos.show.report.compose import compose
from pytest_ldos.show.report.document import Document, Section
from tests.builders.reports import HOSTILE, full_document, full_section, in_words, sample, section_of
from tests.builders.representatives import representatives
from tests.builders.trials import noisy_set

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Tree(HTMLParser):
    """Elements with attributes, text and their ancestors; whether all were closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.texts: list[tuple[set[str], str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        owner = next((tag for tag in reversed(self.open) if tag != "bdi"), "")
        self.texts.append(({owner, *self.open[-1:]}, data))

    def all(self, tag):
        return [attributes for name, attributes, _ in self.found if name == tag]

    def text(self, tag):
        return [data for names, data in self.texts if tag in names]

    @property
    def shape(self):
        return [(tag, sorted(attributes), above) for tag, attributes, above in self.found]


@pytest.fixture(scope="module")
def tree():
    return Tree(page.render(full_document()))


def headings(tree):
    return [int(tag[1]) for tag, _, _ in tree.found if re.fullmatch(r"h[1-6]", tag)]


def test_every_element_is_closed(tree):
    assert tree.open == []
    assert tree.found[0][0] == "html"


def test_page_loads_nothing_and_has_no_scripts(tree):
    text = page.render(full_document())
    policy = next(each["content"] for each in tree.all("meta") if each.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert not {"script", "img", "iframe", "object", "embed", "video", "audio", "form", "base"} & {
        tag for tag, *_ in tree.found
    }
    assert not [
        name for _, attributes, _ in tree.found for name in attributes if name.startswith("on") or name == "style"
    ]
    assert not re.search(r"https?://|url\(|@import", text)
    assert all(each["href"].startswith("#") for each in tree.all("a"))


def test_the_title_names_the_stack():
    section = Section(scenario="reach", verdict=Verdict.PASSED, stack="ros2-mock")
    assert "<title>ldos on ros2-mock: passed</title>" in page.render(Document(sections=(section,)))


def test_page_can_be_navigated(tree):
    """Language, title, landmarks, the way past the head, and headings that skip no level."""
    assert tree.found[0][1]["lang"] == "en"
    assert tree.text("title")[0] == "ldos: regressed"
    assert [len(tree.all(tag)) for tag in ("header", "nav", "main", "footer")] == [1, 1, 1, 1]
    assert tree.all("a")[0]["href"] == f"#{tree.all('main')[0]['id']}"
    levels = headings(tree)
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in itertools.pairwise(levels))


def test_focus_is_always_visible(tree):
    (style,) = tree.text("style")
    assert ":focus-visible { outline: 3px solid" in style
    assert not re.search(r"outline(-style|-width)?: *(none|0)", style)


def test_page_has_no_animation(tree):
    (style,) = tree.text("style")
    assert "prefers-reduced-motion: reduce" in style
    assert not re.search(r"\b(animation|transition)\b", style)


def test_identifiers_are_unique_and_links_resolve(tree):
    ids = [attributes["id"] for _, attributes, _ in tree.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    named = [attributes[name] for _, attributes, _ in tree.found for name in ("aria-labelledby",) if name in attributes]
    assert named
    assert set(named) <= set(ids)
    assert {each["href"][1:] for each in tree.all("a")} <= set(ids)


def test_tables_have_captions_and_scopes(tree):
    assert len(tree.all("caption")) == len(tree.all("table")) > 5
    assert all(each.get("scope") in {"col", "row"} for each in tree.all("th"))


def test_column_headings_are_not_empty(tree):
    """Drawn intervals have a text for screen readers."""
    assert "interval, drawn" in tree.text("span")


def test_drawings_have_a_name_or_are_decorative(tree):
    drawings = tree.all("svg")
    assert len(drawings) > 10
    assert all((each.get("role") == "img") or each.get("aria-hidden") == "true" for each in drawings)
    titles = [above for tag, _, above in tree.found if tag == "title" and above[-1] == "svg"]
    assert len(titles) == len([each for each in drawings if each.get("role") == "img"]) > 8
    regions = [attributes for _, attributes, _ in tree.found if attributes.get("role") == "region"]
    assert all(each["tabindex"] == "0" and each["aria-label"] for each in regions)


def test_slowed_path_is_a_waterfall_of_both_versions_with_one_coloured_part(tree):
    titles = [text for text in tree.text("title") if text.startswith("planning, ")]
    assert titles == ["planning, main~1: 1.00 ms", "planning, this run: 6.00 ms"]
    marked = [
        attributes["class"]
        for tag, attributes, _ in tree.found
        if tag == "g" and "marked" in attributes.get("class", "")
    ]
    assert marked
    coloured = {
        attributes["class"] for tag, attributes, _ in tree.found if attributes.get("class", "").startswith("part ")
    }
    assert {each for each in coloured if "marked" not in each} == {"part plain"}


def test_every_value_of_a_drawing_is_in_a_table(tree):
    cells = tree.text("td")
    for value in ("14.0 ms", "15.0 ms", "13.9 ms", "9.80 ms", "failed"):
        assert value in cells


def test_verdict_comes_first_then_changes_and_advice(tree):
    wanted = ["What moved", "What to do", "Minimum detectable effects", "More trials would help", "All metrics"]
    wanted += ["Where the time went", "Failures", "Trials", "What else differs", "How it was measured"]
    assert [text for text in tree.text("h3") if text in wanted] == wanted


@pytest.mark.parametrize(
    "part",
    [
        "T3 needs more trials",
        "look first at transport",
        "planning_failed (MoveIt code -31)",
        "mujoco",
        "faults.planning_delay_ms",
        "order of the 4 stack starts: base head head base",
        "drift over 4 blocks: T1 +1.0 % (p = 0.4), T3 +20.0 % (p = 0.001)",
        "the machine drifted during the session: T3 +20.0 % (p = 0.001)",
        "10 trials were added, 20 of at most 30 in all; 2 looks at: 10 against 10, 20 against 20",
        "calibration: x (12 starts, 60 trials, 2026-01-01)",
        "main~1",
        "the stack did not start",
        "4000 messages a second",
        "no more trials could be added: the simulator ended",
        "grip was taken elsewhere",
        "grip: 2 of 10 trials not to be trusted: events lost",
        "no MDE of T3, T4_p99: too few trials",
        "2 more segments of state feedback",
    ],
)
def test_everything_in_the_document_is_shown(tree, part):
    if "more segments" in part:
        part = "4 more segments of planning"
    assert part in {text for _, text in tree.texts}


@pytest.mark.parametrize("text", representatives(HOSTILE, 5))
def test_hostile_text_does_not_change_the_page(text):
    """The same elements with the same attributes as with a harmless word, one for one."""
    section, infra = full_document().sections
    small = full_document(sections=(dataclasses.replace(section, metrics=section.metrics[:1]), infra))
    hostile = page.render(in_words(small, text))
    hostile.encode()
    assert not set("\x00\x07\x1b\u202e\u2066\ud800") & set(hostile)
    harmless = "x" * len(one_line(text))
    assert Tree(hostile).shape == Tree(page.render(in_words(small, harmless))).shape


def test_text_is_shown_as_written():
    name = "a <b> & \"c\" 'd' </script>"
    assert name in Tree(page.render(in_words(full_document(), name))).text("bdi")


@pytest.mark.parametrize(
    ("head", "base"),
    [
        (noisy_set(1), noisy_set(2)),
        (noisy_set(1, n=1), noisy_set(2, n=1)),
        (noisy_set(1, failures=10), noisy_set(2)),
        (noisy_set(1), noisy_set(2, failures=10)),
        (noisy_set(1, cv=0.0), noisy_set(1, cv=0.0)),
    ],
)
def test_any_comparison_makes_a_page(head, base):
    tree = Tree(page.render(compose([section_of(head, base)])))
    assert tree.open == []
    assert tree.all("svg")


def test_an_empty_report_is_a_page():
    tree = Tree(page.render(Document(sections=())))
    assert "not judged" in tree.text("span")


def test_interleaved_versions_are_drawn_in_order():
    t1 = next(metric for metric in full_section().metrics if metric.name == "T1")
    turns = (sample(1.0, 2.0, first_block=0, per_block=1, step=3), sample(3.0, 4.0, first_block=1, per_block=1))
    metric = dataclasses.replace(t1, base=turns[0], head=turns[1])
    section = full_section(metrics=(metric,))
    fields = [
        each["class"] for each in Tree(page.render(Document(sections=(section,)))).all("g") if "field" in each["class"]
    ]
    assert fields == ["field base", "field head", "field head", "field base"]
    sequential = dataclasses.replace(section, interleaving=None)
    fields = [
        each["class"]
        for each in Tree(page.render(Document(sections=(sequential,)))).all("g")
        if "field" in each["class"]
    ]
    assert fields == ["field base", "field base", "field head", "field head"]


@pytest.mark.parametrize("verdict", representatives([None, *Verdict], 3))
def test_verdict_is_shown_as_a_word_and_a_colour(verdict):
    tree = Tree(page.render(Document(sections=(full_section(verdict=verdict),))))
    word = "not judged" if verdict is None else verdict.value.replace("_", " ")
    assert any(word in text for text in tree.text("span"))
