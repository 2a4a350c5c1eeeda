"""Distances agree with formulas and with brute force, whatever the cell's frame and order."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy.spatial.transform import Rotation

import twin
from twin.studies.cell import Clearance
from twin.studies.cell.cell import arm_solids, coal, solids_of
from twin.studies.cell.clearance import PRECISION, closest
from urdf.build import facts_file
from urdf.facts import read

pytestmark = pytest.mark.slow("computes distances along motions")

ROBOT = twin.load("irb140")
POST = "[objects.post]\ncylinder = 0.05\nfrom = [0.6, 0.1, 0]\nto = [0.6, 0.1, 1.5]\n"


def cell_of(tmp_path, text):
    path = tmp_path / "cell.toml"
    path.write_text(text, encoding="utf-8")
    return twin.load_cell(path)


def distance(a, T_a, b, T_b):
    library = coal()
    request = library.DistanceRequest()
    request.gjk_tolerance = request.epa_tolerance = 1e-7
    places = [library.Transform3s(T[:3, :3].copy(), T[:3, 3].copy()) for T in (T_a, T_b)]
    return library.distance(a.geometry, places[0], b.geometry, places[1], request, library.DistanceResult())


def pose(rng, spread):
    T = np.eye(4)
    T[:3, :3] = Rotation.random(random_state=int(rng.integers(1 << 30))).as_matrix()
    T[:3, 3] = rng.uniform(-spread, spread, 3)
    return T


def solid(shape):
    return solids_of(shape, -1, "shape", np.eye(4), "test")[0]


def box_distance(size, point):
    """Return the signed distance of a point from a box."""
    beyond = np.abs(point) - np.array(size) / 2
    return np.linalg.norm(np.maximum(beyond, 0)) + min(beyond.max(), 0.0)


def cylinder_distance(radius, length, point):
    """Return the signed distance of a point from a cylinder along z."""
    x, y, z = point
    beyond = np.array([np.hypot(x, y) - radius, abs(z) - length / 2])
    return np.linalg.norm(np.maximum(beyond, 0)) + min(beyond.max(), 0.0)


@settings(max_examples=30, deadline=None)
@given(some.integers(0, 10**6))
def test_a_sphere_and_a_box_or_a_cylinder(seed):
    rng = np.random.default_rng(seed)
    size, radius, R, L = rng.uniform(0.02, 0.6, 3), rng.uniform(0.01, 0.2), *rng.uniform(0.02, 0.6, 2)
    T, T_ball = pose(rng, 0.5), pose(rng, 0.5)
    centre = T[:3, :3].T @ (T_ball[:3, 3] - T[:3, 3])
    box, rod = solid({"box": size}), solid({"cylinder": R / 3, "from": [0, 0, -L / 2], "to": [0, 0, L / 2]})
    for one, surface in ((box, box_distance(size, centre)), (rod, cylinder_distance(R / 3, L, centre))):
        found, expected = distance(one, T @ one.T, solid({"sphere": radius}), T_ball), surface - radius
        if expected > -0.02:
            assert found == pytest.approx(expected, abs=1e-6 if expected > 0 else 1e-5)
        else:
            assert found < 0


@settings(max_examples=25, deadline=None)
@given(some.integers(0, 10**6))
def test_overlaps_of_boxes_have_the_sign_of_separating_axes(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.uniform(0.05, 0.5, (2, 3))
    T = [pose(rng, 0.3) for _ in range(2)]
    found = distance(solid({"box": sizes[0]}), T[0], solid({"box": sizes[1]}), T[1])
    axes = [*T[0][:3, :3].T, *T[1][:3, :3].T]
    axes += [np.cross(a, b) for a in T[0][:3, :3].T for b in T[1][:3, :3].T]
    gaps = []
    for axis in axes:
        if (length := np.linalg.norm(axis)) > 1e-9:
            reach = sum(np.abs(P[:3, :3].T @ axis) @ size / 2 for P, size in zip(T, sizes, strict=True))
            gaps.append((abs((T[1][:3, 3] - T[0][:3, 3]) @ axis) - reach) / length)
    if abs(max(gaps)) > 1e-6:
        assert (found > 0) == (max(gaps) > 0)
    if -0.02 < max(gaps) < 0:
        assert found == pytest.approx(max(gaps), abs=1e-5)


def test_all_pairs_agree_with_the_pair_that_boxes_find_first(tmp_path):
    floor = "[objects.floor]\nbox = [2, 2, 0.1]\nat = [0, 0, -0.3]"
    clearance = Clearance(ROBOT, cell_of(tmp_path, POST + floor))
    rng = np.random.default_rng(0)
    for q in rng.uniform(ROBOT.q_min, ROBOT.q_max, (25, 6)):
        every = clearance.all_pairs(q)
        nearest = clearance.nearest(q)
        assert nearest.distance == pytest.approx(every[0].distance, abs=1e-7)
        if nearest.distance > 0:
            p, r = nearest.points
            assert np.linalg.norm(p - r) == pytest.approx(nearest.distance, abs=1e-6)


def test_moving_cell_and_base_together_changes_nothing(tmp_path):
    pose = "at = [1, -2, 0.5]\nrpy_deg = [10, 20, 30]\n"
    ball, here = "[objects.ball]\nsphere = 0.1\nat = [0.3, 0.5, 0.6]\n", 'frame = "here"\n'
    post = "[objects.post]\nshapes = [{ cylinder = 0.05, from = [0.6, 0.1, 0], to = [0.6, 0.1, 1.5] }]\n"
    before = cell_of(tmp_path, POST + ball)
    after = cell_of(tmp_path, f"[base]\n{pose}[frames.here]\n{pose}{ball}{here}{post}{here}")
    for q in (ROBOT.poses["zero"], ROBOT.poses["test_1"]):
        one, two = ({r.pair: r.distance for r in cell.distances(ROBOT, q)} for cell in (before, after))
        assert one.keys() == {tuple(pair) for pair in two}
        assert all(one[pair] == pytest.approx(two[pair], abs=2e-7) for pair in one)


def test_neighbours_and_fixed_pairs_are_left_out(tmp_path):
    tool = "[tool]\nshapes = [{ sphere = 0.02, at = [0, 0, 0.05] }]\n"
    pairs = set(Clearance(ROBOT, cell_of(tmp_path, tool + POST)).pairs)
    assert pairs >= {("base", "link_2"), ("link_4", "tool"), ("tool", "post")}
    assert not pairs & {("base", "link_1"), ("base", "post"), ("link_6", "tool"), ("link_5", "tool")}


def test_rules_set_margins_or_allow_touching(tmp_path):
    rules = '[[pairs]]\nbetween = ["post", "link_1"]\nmay_touch = true\n'
    rules += '[[pairs]]\nbetween = ["post", "link_2"]\nmargin = 0.1'
    pairs = Clearance(ROBOT, cell_of(tmp_path, "margin = 0.02\n" + POST + rules)).pairs
    assert ("link_1", "post") not in pairs
    assert pairs["link_2", "post"] == 0.1
    assert pairs["link_3", "post"] == 0.02
    assert pairs["base", "link_2"] == 0.0  # the cell's margin is that of its objects


def test_every_arm_has_shapes_of_all_links():
    for name in twin.robot_names():
        assert {one.body for one in arm_solids(twin.load(name))} >= {-1, *range(6)}


@pytest.mark.parametrize("name", ["irb140", "irb1600"])
def test_covers_stand_where_the_facts_state_and_move_with_their_links(name):
    robot = twin.load(name)
    clearance = Clearance(robot, twin.Cell.empty())
    shapes = [shape for link in read(facts_file(name))["link"].values() for shape in link["cover"]]
    stated = [one["at"] if "at" in one else (np.array(one["from"]) + one["to"]) / 2 for one in shapes]
    at_zero = clearance.poses(np.zeros(6))
    assert np.allclose(at_zero[:, :3, 3], stated, atol=1e-12)
    q = robot.poses["test_1"] if "test_1" in robot.poses else np.full(6, 0.3)
    moved = clearance.poses(q)
    links = (twin.kinematics.link_poses(robot, one) for one in (np.zeros(6), q))
    T = [np.eye(4), *(b @ np.linalg.inv(a) for a, b in zip(*links, strict=True))]
    for solid, before, after in zip(clearance.solids, at_zero, moved, strict=True):
        assert np.allclose(after, T[solid.body + 1] @ before, atol=1e-12)


# The nearest approach of a motion, with its proof, is that of samples many times finer.


TOOL = "[tool]\nshapes = [{ cylinder = 0.002, from = [0, 0, 0], to = [0, 0, 0.2] }]\n"
ROD = "[objects.rod]\ncylinder = 0.002\nfrom = [{0}, {1}, 0.3]\nto = [{0}, {1}, 1.2]\n"
FLOOR = "[objects.floor]\nbox = [2, 2, 0.1]\nat = [0, 0, -0.3]\n"


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    return cell_of(tmp_path_factory.mktemp("cell"), TOOL + ROD.format(0.65, 0.05) + FLOOR)


@pytest.fixture(scope="module")
def clearance(cell):
    return Clearance(ROBOT, cell)


def sweep(N):
    """Return times and angles of a turn of joint 1, in which the tool passes the rod."""
    t = np.linspace(0, 1, N)
    q = np.zeros((N, 6))
    q[:, 0] = -0.3 + 0.6 * t
    return t, q


def test_the_least_distance_is_that_of_finer_samples(clearance):
    q0, q1 = np.random.default_rng(3).uniform(-0.8, 0.8, (2, 6))
    t = np.linspace(0, 1, 26)
    q = q0 + t[:, None] ** 2 * (q1 - q0)
    found = closest(clearance, t, q, np.zeros(6))
    fine = np.array([np.interp(np.linspace(0, 1, 126), t, column) for column in q.T]).T
    least = min(one.clearance for one in clearance.nearest_each(fine))
    precision = max(PRECISION, 0.01 * least)
    assert found.bound <= least + 1e-9
    assert found.nearest.clearance <= least + precision
    assert found.nearest.clearance - precision <= found.bound


def test_a_thin_pin_through_a_thin_rod_is_found_between_coarse_samples(clearance):
    t, q = sweep(24)
    coarse = min(one.distance for one in clearance.nearest_each(q))
    assert coarse > 0.002  # the samples say: free
    found = closest(clearance, t, q, np.zeros(6))
    assert found.nearest.distance < -0.003
    assert set(found.nearest.pair) == {"tool", "rod"}
    assert np.abs(np.interp(found.t, t, q[:, 0]) - found.q[0]) < 1e-12


def test_a_rod_beside_the_first_of_two_samples_is_found(tmp_path):
    """The stretched arm moves almost as far as its proof assumes, so nothing less would lead to the rod."""
    touching = '[[pairs]]\nbetween = ["link_4", "tool"]\nmay_touch = true\n'
    rod = ROD.format(*(1.04 * np.array([np.cos(0.036), -np.sin(0.036)])))
    q = np.zeros((2, 6))
    q[:, 0], q[:, 1], q[:, 2] = (-0.045, 0.045), np.pi / 2, -np.pi / 2
    found = closest(
        Clearance(ROBOT, cell_of(tmp_path, TOOL + rod + touching)), np.arange(2.0), q, np.zeros(6)
    )
    assert found.nearest.distance < -0.003


def test_no_point_of_the_arm_is_farther_from_a_joint_than_its_reach(clearance):
    for q in np.random.default_rng(4).uniform(ROBOT.q_min, ROBOT.q_max, (60, 6)):
        joints = twin.kinematics.link_poses(ROBOT, q)[:, :3, 3]
        for solid, T in zip(clearance.solids, clearance.poses(q), strict=True):
            distances = np.linalg.norm(joints - T[:3, 3], axis=1)
            assert np.all(distances[: solid.body + 1] <= clearance.reach[: solid.body + 1])


def test_a_thinned_log_is_not_proven(clearance):
    t, q = sweep(24)
    slack = ROBOT.qd_max * (t[1] - t[0])
    found = closest(clearance, t, q, slack, refine=False)
    assert not found.proven
    assert found.nearest.distance > 0.002
    assert found.bound < -0.004  # the rod may have been hit


def test_a_log_is_checked_along_its_motion_as_far_as_it_has_finite_positions(cell, clearance):
    from scenarios.gravity_hold import GravityHold
    from scenarios.studies.cell.clearance import clearance_metric

    log = GravityHold(duration=0.1).run().log
    log = replace(log, q=sweep(len(log.t))[1] - np.array([0.3, 0, 0, 0, 0, 0]))  # ends beside the rod
    found = cell.least_distance(log)
    assert found.proven
    assert found.lost_at is None
    least = min(one.distance for one in clearance.nearest_each(log.q))
    assert found.nearest.distance == pytest.approx(least, rel=0.01)
    thinned = replace(log, steps_per_period=2, time_step=log.time_step / 2)
    assert not cell.least_distance(thinned).proven
    q = log.q.copy()
    q[50:] = np.nan
    found = cell.least_distance(replace(log, q=q))
    assert (found.samples, found.lost_at) == (50, log.t[50])
    assert found.t <= log.t[49]
    assert "checked up to 0.05 s" in clearance_metric(found, cell, log.robot).why
