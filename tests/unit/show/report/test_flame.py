"""Flame graphs: they show the samples, and names are text."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from pytest_ldos.record.profiles import FoldedStacks, build_tree, compare_profiles, parse_folded
from pytest_ldos.show.report.drawings import draw_difference, draw_flame
from pytest_ldos.show.report.flame import describe_changes, describe_noise, place_frames

SVG = "{http://www.w3.org/2000/svg}"
PROFILE = FoldedStacks({("p", "f", "g"): 60, ("p", "f"): 20, ("p", "h"): 15, ("q",): 5})
HOSTILE = [
    "</title></svg><script>alert(1)</script>",
    "std::map<int, std::vector<a&>>::operator()(char const*) \"x\" 'y'",
    "\x1b]0;owned\x07\u202e<!--",
    "]]></style><style>rect{fill:red}",
]


def frames_of(svg: str) -> dict[str, ET.Element]:
    """Groups of a drawing, by what they say."""
    root = ET.fromstring(svg)
    return {group.findtext(f"{SVG}title", ""): group for group in root.iter(f"{SVG}g")}


def width_of(group: ET.Element) -> float:
    (rectangle,) = group.findall(f"{SVG}rect")
    return float(rectangle.attrib["width"])


def test_widths_are_shares_and_callees_are_above():
    frames = frames_of(draw_flame(PROFILE, title="it"))
    found = {printed.split(":")[0]: group for printed, group in frames.items()}
    assert set(found) == {"all", "p", "q", "f", "g", "h"}
    whole = width_of(found["all"])
    assert [round(width_of(found[name]) / whole, 3) for name in "pqfgh"] == [0.95, 0.05, 0.8, 0.6, 0.15]
    heights = [float(found[name].find(f"{SVG}rect").get("y")) for name in ("all", "p", "f", "g")]
    assert heights == sorted(heights, reverse=True)
    assert "g: 60 of 100 samples (60.0 %), 60.0 % in itself" in frames


def test_frames_are_within_their_caller_and_do_not_overlap():
    tree = build_tree([PROFILE])
    places = {each.frame.path: each for each in place_frames(tree, lambda frame: frame.counts[0] / 100, narrowest=0)}
    for path, place in places.items():
        inside = [each for other, each in places.items() if other[:-1] == path and other]
        edge = place.left
        for each in sorted(inside, key=lambda each: each.left):
            assert each.left == pytest.approx(edge)
            edge += each.width
        assert edge <= place.left + place.width + 1e-9


def test_narrow_frames_are_left_out():
    profile = FoldedStacks({("p", "wide"): 100_000, ("p", "narrow", "inner"): 1})
    svg = draw_flame(profile, title="it")
    assert "wide" in svg
    assert "narrow" not in svg
    assert "inner" not in svg


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(name):
    plain = draw_flame(FoldedStacks({("p", "f"): 3}), title="it", notes=["x"])
    evil = draw_flame(parse_folded(f"p;{name.replace(';', '')} 3", "it"), title=name, notes=[name])
    assert [each.tag for each in ET.fromstring(plain).iter()] == [each.tag for each in ET.fromstring(evil).iter()]
    assert "\x1b" not in evil
    assert "\u202e" not in evil


def test_there_is_no_script_and_nothing_is_loaded():
    svg = draw_flame(PROFILE, title="it")
    root = ET.fromstring(svg)
    assert not [each for each in root.iter() if each.tag in {f"{SVG}script", f"{SVG}image", f"{SVG}foreignObject"}]
    assert not [name for each in root.iter() for name in each.attrib if name.startswith("on") or "href" in name]
    assert "url(" not in svg
    assert "@import" not in svg


def test_only_certain_changes_have_a_colour():
    base = FoldedStacks({("p", "f"): 500, ("p", "g"): 500})
    head = FoldedStacks({("p", "f"): 750, ("p", "g"): 240, ("p", "new"): 10})
    frames = frames_of(draw_difference(compare_profiles([base], [head]), title="it"))
    colours = {printed.split(":")[0]: group.find(f"{SVG}rect").get("class") for printed, group in frames.items()}
    assert colours["f"] == "more5"
    assert colours["g"] == "less5"
    assert colours["p"] == "same"
    printed = next(each for each in frames if each.startswith("f:"))
    assert "50.0 % → 75.0 %, +25.0 % of all (+" in printed


def test_equal_versions_have_no_colour_and_noise_is_described():
    difference = compare_profiles([PROFILE], [PROFILE])
    frames = frames_of(draw_difference(difference, title="it"))
    assert {group.find(f"{SVG}rect").get("class") for group in frames.values()} == {"all", "same"}
    assert sum("may be chance" in printed for printed in frames) == len(frames) - 1
    assert "the variation between starts is unknown" in " ".join(describe_noise(difference))
    assert list(describe_changes(difference)) == ["no frame's share changed significantly"]


def test_removed_frames_are_drawn():
    difference = compare_profiles([FoldedStacks({("old",): 400})], [FoldedStacks({("new",): 400})])
    frames = frames_of(draw_difference(difference, title="it"))
    found = {printed.split(":")[0]: group for printed, group in frames.items()}
    assert width_of(found["old"]) == width_of(found["new"]) == pytest.approx(width_of(found["all"]) / 2, rel=0.01)


def test_chain_of_calls_is_reported_once_by_its_innermost_frame():
    way = tuple("abcdefgh")
    base = FoldedStacks({("p", *way): 100, ("p", "x"): 900})
    head = FoldedStacks({("p", *way): 500, ("p", "x"): 500})
    lines = list(describe_changes(compare_profiles([base], [head])))
    assert len(lines) == 2
    assert any(line.endswith("p;…;e;f;g;h") for line in lines)
    assert any(line.endswith("p;x") for line in lines)
