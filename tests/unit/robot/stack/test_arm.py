"""The Panda: kinematics, motion and collisions."""

from __future__ import annotations

import itertools
import math

import mujoco
import numpy as np
import pytest

from pytest_ldos.robot.stack.embedded.move_group import plan_path, time_path
from pytest_ldos.robot.stack.embedded.panda import Kinematics, TimedPath, from_message, load_panda, to_message
from pytest_ldos.robot.stack.embedded.simulator import Arm, Trajectory, TrajectoryController, TrajectoryResult
from pytest_ldos.robot.stack.goals import HOME, REACH, Pose, PoseError

STEP_NS = 1_000_000


@pytest.fixture(scope="module")
def panda():
    return load_panda()


@pytest.fixture
def kinematics(panda):
    return Kinematics(panda)


def solve(kinematics, panda, pose, *, seed=1, attempts=30):
    return kinematics.inverse(pose, panda.ready, rng=np.random.default_rng(seed), attempts=attempts)


def test_model_matches_the_manufacturers(panda):
    assert panda.joint_names == tuple(f"panda_joint{i}" for i in range(1, 8))
    assert panda.upper.tolist() == pytest.approx([2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973])
    assert panda.velocity_limit.tolist() == [2.175] * 4 + [2.61] * 3
    arm = sum(panda.model.body(f"panda_link{i}").mass[0] for i in range(8))
    assert arm == pytest.approx(0.629769 + 4.970684 + 0.646926 + 3.228604 + 3.587895 + 1.225946 + 1.666555 + 0.735522)


def denavit_hartenberg(joints) -> np.ndarray:
    """The flange by the maker's table (Craig's convention): a, d, α of each joint."""
    rows = [
        (0, 0.333, 0),
        (0, 0, -math.pi / 2),
        (0, 0.316, math.pi / 2),
        (0.0825, 0, math.pi / 2),
        (-0.0825, 0.384, -math.pi / 2),
        (0, 0, math.pi / 2),
        (0.088, 0, math.pi / 2),
        (0, 0.107, 0),
    ]
    pose = np.eye(4)
    for (a, d, alpha), theta in zip(rows, [*joints, 0.0], strict=True):
        ca, sa, ct, st = math.cos(alpha), math.sin(alpha), math.cos(theta), math.sin(theta)
        pose = pose @ np.array(
            [[ct, -st, 0, a], [st * ca, ct * ca, -sa, -d * sa], [st * sa, ct * sa, ca, d * ca], [0, 0, 0, 1]]
        )
    return pose


def test_forward_kinematics_match_the_manufacturers_table(panda, kinematics):
    rng = np.random.default_rng(0)
    for _ in range(50):
        joints = rng.uniform(panda.lower, panda.upper)
        expected = denavit_hartenberg(joints)
        quaternion = np.empty(4)
        mujoco.mju_mat2Quat(quaternion, expected[:3, :3].ravel())
        w, x, y, z = quaternion
        error = PoseError.between(kinematics.forward(joints), Pose(tuple(expected[:3, 3]), (x, y, z, w)))
        assert error.position_m < 1e-6
        assert error.rotation_rad < 1e-5


def test_inverse_kinematics_reach_the_goal_without_a_collision(panda, kinematics):
    joints = solve(kinematics, panda, REACH.pose)
    error = PoseError.between(REACH.pose, kinematics.forward(joints))
    assert error.position_m < 1e-4
    assert error.rotation_rad < 1e-3
    assert not kinematics.is_colliding(joints)
    assert np.all(joints >= panda.lower)
    assert np.all(joints <= panda.upper)


def test_pose_out_of_reach_has_no_solution(panda, kinematics):
    assert solve(kinematics, panda, Pose((1.4, 0, 0.5), (1, 0, 0, 0)), attempts=10) is None


def test_the_arm_can_touch_itself_the_floor_and_the_pillar(panda, kinematics):
    assert not kinematics.is_colliding(panda.ready)
    folded = panda.ready.copy()
    folded[3], folded[5] = -3.05, 0.2
    assert kinematics.is_colliding(folded)
    floored = panda.ready.copy()
    floored[1], floored[3] = 1.7, -0.2
    assert kinematics.is_colliding(floored)
    into_pillar = solve_ignoring_collisions(panda, kinematics, Pose((0.55, -0.15, 0.45), (1, 0, 0, 0)))
    assert kinematics.is_colliding(into_pillar)


def solve_ignoring_collisions(panda, kinematics, pose):
    return kinematics._descend(pose, panda.ready)


def is_free(kinematics, one, other) -> bool:
    return not any(kinematics.is_colliding(one + (other - one) * s) for s in np.linspace(0, 1, 200))


def plan(panda, kinematics, goal, seed):
    return plan_path(panda, panda.ready, goal, is_colliding=kinematics.is_colliding, seed=seed, time_limit_s=300.0)


def test_plans_avoid_obstacles(panda, kinematics):
    """Behind the pillar: the straight way collides, the planned one does not."""
    goal = solve(kinematics, panda, Pose((0.6, -0.35, 0.25), (1, 0, 0, 0)))
    assert not is_free(kinematics, panda.ready, goal)
    path = plan(panda, kinematics, goal, seed=1)
    assert len(path) > 2
    assert np.allclose(path[0], panda.ready)
    assert np.allclose(path[-1], goal)
    assert all(is_free(kinematics, a, b) for a, b in itertools.pairwise(path))


def test_equal_seeds_plan_equal_paths(panda, kinematics):
    goal = solve(kinematics, panda, Pose((0.6, -0.35, 0.25), (1, 0, 0, 0)))
    one, again, other = (plan(panda, kinematics, goal, seed) for seed in (5, 5, 6))
    assert np.array_equal(one, again)
    assert one.shape != other.shape or not np.allclose(one, other)


@pytest.fixture(scope="module")
def reach(panda):
    kinematics = Kinematics(panda)
    waypoints = plan(panda, kinematics, solve(kinematics, panda, REACH.pose), seed=1)
    return time_path(panda, waypoints, velocity_scaling=0.5, acceleration_scaling=0.5)


def test_timing_keeps_and_reaches_the_limits(panda, reach):
    assert np.all(np.abs(reach.velocities) <= 0.5 * panda.velocity_limit * 1.001)
    assert np.all(np.abs(reach.accelerations) <= 0.5 * panda.acceleration_limit * 1.01)
    used = np.max(np.abs(reach.velocities) / (0.5 * panda.velocity_limit))
    assert used == pytest.approx(1.0, abs=0.01)
    assert np.allclose(reach.velocities[[0, -1]], 0, atol=1e-6)
    assert reach.duration_s == pytest.approx(1.915, abs=0.02)


def test_a_path_of_no_length_takes_no_time_to_plan(panda):
    still = time_path(panda, np.array([panda.ready, panda.ready]), velocity_scaling=0.5, acceleration_scaling=0.5)
    assert still.duration_s == pytest.approx(0.1)
    assert np.all(still.velocities == 0)


def test_a_trajectory_passes_through_its_points(reach):
    trajectory = Trajectory(reach)
    for time_s, position, velocity in zip(reach.times_s, reach.positions, reach.velocities, strict=True):
        at = trajectory.at(float(time_s))
        assert np.allclose(at[0], position, atol=1e-9)
        assert np.allclose(at[1], velocity, atol=1e-6)
    after = trajectory.at(reach.duration_s + 1)
    assert np.allclose(after[0], reach.positions[-1])
    assert np.all(after[1] == 0)


def test_trajectories_round_trip(panda, reach):
    back = from_message(to_message(reach, panda.joint_names))
    assert np.allclose(back.times_s, reach.times_s, atol=1e-9)
    assert np.array_equal(back.positions, reach.positions)


def test_incomplete_trajectories_are_refused(panda, reach):
    message = to_message(reach, panda.joint_names)
    message.points[3].velocities = np.empty(0)
    with pytest.raises(ValueError, match="every joint"):
        from_message(message)
    message = to_message(reach, panda.joint_names)
    message.points = message.points[::-1]
    with pytest.raises(ValueError, match="order of time"):
        from_message(message)


def run(controller: TrajectoryController, arm: Arm, limit_s: float) -> tuple[TrajectoryResult | None, float]:
    """Steps arm and controller until a result, at 1 kHz and 500 Hz; returns it with the simulated time."""
    for step in range(round(limit_s * 1000)):
        if step % 2 == 0:
            position, velocity, _ = arm.read()
            result = controller.update(step * STEP_NS, position, velocity)
            arm.write(controller.command.position, controller.command.velocity)
            if result is not None:
                return result, step / 1000
        arm.step()
    return None, limit_s


def test_the_arm_follows_its_trajectory_and_arrives(panda, kinematics, reach):
    arm, controller = Arm(panda), TrajectoryController(panda.ready)
    controller.follow(reach, 0)
    result, took_s = run(controller, arm, 4.0)
    assert result is TrajectoryResult.SUCCESSFUL
    assert reach.duration_s <= took_s < reach.duration_s + 0.1
    error = PoseError.between(REACH.pose, kinematics.forward(arm.read()[0]))
    assert error.position_m < 0.005
    assert error.rotation_rad < 0.01
    assert controller.update(round(5e9), *arm.read()[:2]) is None


def test_blocked_arm_violates_the_path(panda, reach):
    controller = TrajectoryController(panda.ready)
    controller.follow(reach, 0)
    rest = np.zeros(7)
    results = [controller.update(step * STEP_NS, panda.ready, rest) for step in range(1500)]
    assert TrajectoryResult.PATH_TOLERANCE_VIOLATED in results


def test_an_arm_that_does_not_settle_violates_the_goal(panda, reach):
    controller = TrajectoryController(panda.ready)
    controller.follow(reach, 0)
    trajectory, rest = Trajectory(reach), np.zeros(7)
    end_ns = round((reach.duration_s + 1.2) * 1e9)
    results = []
    for now_ns in range(0, end_ns, 2 * STEP_NS):
        position, _ = trajectory.at(now_ns / 1e9)
        results.append(controller.update(now_ns, position + 0.05, rest))
    assert [result for result in results if result is not None] == [TrajectoryResult.GOAL_TOLERANCE_VIOLATED]


def test_holding_keeps_the_last_command(panda, reach):
    controller = TrajectoryController(panda.ready)
    controller.follow(reach, 0)
    controller.update(500 * STEP_NS, panda.ready, np.zeros(7))
    held = controller.command.position.copy()
    controller.hold()
    controller.update(502 * STEP_NS, panda.ready, np.zeros(7))
    assert np.array_equal(controller.command.position, held)
    assert np.all(controller.command.velocity == 0)


def test_paths_are_planned_without_dds():
    assert isinstance(HOME.joints, dict)
    assert TimedPath(np.zeros(1), np.zeros((1, 7)), np.zeros((1, 7)), np.zeros((1, 7))).duration_s == 0
