"""Grades the problems of suite.yaml by RRTConnect's time, writes the table of README.md, and draws a sheet of them.

    python measure_suite.py            # the grades are those of this machine
    python measure_suite.py --picture  # needs a graphics library (`MUJOCO_GL=egl` or `osmesa`)

It needs pytest-ldos[embedded], whose planner takes the same problems, and Pillow.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
from make_suite import JOINTS, SUITE, Problem, graded, to_yaml
from PIL import Image, ImageDraw, ImageFont

from pytest_ldos.robot.stack.embedded.move_group import Planner
from pytest_ldos.robot.stack.embedded.panda import Failed, Kinematics, Panda, load_panda, to_goal, to_start
from pytest_ldos.robot.stack.embedded.problem_planner import goal_of
from pytest_ldos.robot.stack.goals import Goal
from pytest_ldos.robot.stack.problems import ALL, read_problems
from pytest_ldos.scenario.stimuli import PlanSpec

README = SUITE.with_name("README.md")
PICTURE = Path(__file__).parents[2] / "docs/pictures/planning-suite.png"
TABLE = "<!-- table -->\n"
SEEDS = range(1, 11)
LIMIT_S = 5.0
GRADES = {"easy": 25.0, "medium": 100.0}
"""Largest median CPU time of a plan [ms] of a grade; longer, or solved by fewer seeds than `MOST`, is hard."""
MOST = 8


class Asked(NamedTuple):
    """A problem as the planner takes it."""

    problem: Problem
    request: Any
    goal: Goal
    start: np.ndarray
    panda: Panda


def load(found: list[Problem]) -> Iterator[Asked]:
    cases = read_problems(PlanSpec(problems=str(SUITE))).cases(ALL)
    for problem, case in zip(found, cases, strict=True):
        message = goal_of(case.message, case.name, time_limit_s=LIMIT_S)
        goal, start = to_goal(message.request.goal_constraints, JOINTS), to_start(message.request.start_state, JOINTS)
        panda = load_panda(message.planning_options.planning_scene_diff.world.collision_objects)
        yield Asked(problem, message.request, goal, start, panda)


def grade(found: list[Problem]) -> str:
    """Plans each problem with each seed, sets its grade, and returns the table."""
    rows = ["| problem | grade | median [ms] | solved |", "|---|---|--:|--:|"]
    for problem, request, goal, start, panda in load(found):
        planner, kinematics, times_ms = Planner(panda), Kinematics(panda), []
        for seed in SEEDS:
            began_ns = time.process_time_ns()
            try:
                planner.plan(goal, request, start, seed, kinematics=kinematics)
                times_ms.append((time.process_time_ns() - began_ns) / 1e6)
            except Failed:
                times_ms.append(math.inf)
        median, solved = statistics.median(times_ms), sum(map(math.isfinite, times_ms))
        fits = [name for name, longest_ms in GRADES.items() if median <= longest_ms and solved >= MOST]
        problem.grade = fits[0] if fits else "hard" if solved else "unsolvable"
        shown = f"{median:.0f}" if math.isfinite(median) else "—"
        rows.append(f"| {problem.name} | {problem.grade} | {shown} | {solved} of {len(SEEDS)} |")
    return "\n".join(rows) + "\n"


COLUMNS, WIDTH, HEIGHT, CAPTION = 6, 180, 150, 16
START, GOAL, OBSTACLE = (0.3, 0.45, 0.75, 1), (0.2, 0.65, 0.35, 1), (0.9, 0.65, 0.35, 0.55)


def draw(found: list[Problem]) -> None:
    """Draws a sheet with the start of each problem in blue and its goal in green, each shining through."""
    sheet = Image.new("RGB", (COLUMNS * WIDTH, -(-len(found) // COLUMNS) * (HEIGHT + CAPTION)), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(11)
    for number, asked in enumerate(load(found)):
        x, y = number % COLUMNS * WIDTH, number // COLUMNS * (HEIGHT + CAPTION)
        pen.text((x + 3, y + 2), asked.problem.name, "black", font)
        ends_at = asked.problem.goal
        if asked.goal.pose is not None:
            rng = np.random.default_rng(SEEDS[0])
            ends_at = Kinematics(asked.panda).inverse(asked.goal.pose, asked.start, rng=rng, attempts=30)
        images = [picture(asked.panda.model, *each) for each in ((asked.start, START), (ends_at, GOAL))]
        sheet.paste(Image.blend(*images, 0.5), (x, y + CAPTION))
    sheet.quantize(64).save(PICTURE, optimize=True)


def picture(model: mujoco.MjModel, joints: np.ndarray, colour: tuple[float, ...]) -> Image.Image:
    bodies = [model.body(body).name for body in model.geom_bodyid]
    of_arm = np.array([name.startswith("panda") for name in bodies])
    model.geom_rgba[of_arm], model.geom_rgba[~of_arm] = colour, OBSTACLE
    model.geom_rgba[[name == "floor" for name in bodies], 3] = 0
    model.vis.headlight.ambient[:], model.vis.headlight.diffuse[:] = 0.5, 0.5
    camera = mujoco.MjvCamera()
    camera.azimuth, camera.elevation, camera.distance, camera.lookat[:] = 50, -24, 2.25, (0.25, 0, 0.4)
    data = mujoco.MjData(model)
    data.qpos[:] = joints
    mujoco.mj_forward(model, data)
    with mujoco.Renderer(model, HEIGHT, WIDTH) as renderer:
        renderer.update_scene(data, camera)
        pixels = renderer.render().copy()
    pixels[pixels.max(axis=2) == 0] = 255
    return Image.fromarray(pixels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--picture", action="store_true", help=f"draw {PICTURE.name}, and measure nothing")
    found = graded()
    if parser.parse_args().picture:
        draw(found)
        return
    head, table, rest = README.read_text("utf-8").partition(TABLE)
    README.write_text(head + table + grade(found) + table + rest.partition(TABLE)[2], "utf-8")
    SUITE.write_text(to_yaml(found), "utf-8")


if __name__ == "__main__":
    main()
