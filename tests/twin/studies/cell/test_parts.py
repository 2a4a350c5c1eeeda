"""Parts in the hand have the distances of a tool, and where they are left those of an object."""

from dataclasses import replace

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

import twin
from twin.base.errors import CellError
from twin.physics.kinematics.forward import forward_kinematics, link_poses
from twin.studies.cell.cell import Tool
from twin.studies.cell.clearance import Clearance, Gripper, closest

ROBOT = twin.load("irb140")
AROUND = """margin = 0.01
[base]
at = [0.1, -0.2, 0.05]
rpy_deg = [0, 20, 0]
[frames.here]
at = [0.5, 0.1, 0.6]
rpy_deg = [10, -20, 30]
[objects.table]
box = [0.6, 0.8, 0.04]
at = [0.6, 0, 0.3]
[objects.ball]
sphere = 0.1
at = [0.1, 0.6, 0.9]
"""
SHAPES = 'shapes = [{ box = [0.2, 0.06, 0.05] }, { sphere = 0.04, at = [0.1, 0.02, 0.03] }]\nframe = "here"\n'
PART = f"[objects.part]\n{SHAPES}mass = 2.0\n"
Q = np.radians([20.0, 10, -15, 30, 40, -50])


@pytest.fixture
def load(tmp_path):
    def read(text):
        path = tmp_path / "cell.toml"
        path.write_text(text, encoding="utf-8")
        return twin.load_cell(path)

    return read


def configurations(robot, count=20, seed=1):
    return np.random.default_rng(seed).uniform(robot.q_min, robot.q_max, (count, robot.n))


def placed(shapes, T):
    """Return shapes, without turns of their own, in a frame with the pose (4, 4)."""
    turn = Rotation.from_matrix(T[:3, :3]).as_euler("xyz", degrees=True)
    return tuple(
        {**shape, "at": T[:3, :3] @ shape.get("at", np.zeros(3)) + T[:3, 3], "rpy_deg": turn}
        for shape in shapes
    )


def distances(clearance, q, **names):
    found = clearance.all_pairs(q)
    return {
        frozenset(names.get(name, name) for name in one.pair): (one.distance, one.margin) for one in found
    }


def require_equal(one, other):
    assert one.keys() == other.keys()
    for pair in one:
        assert one[pair] == pytest.approx(other[pair], abs=1e-12), pair


@pytest.mark.parametrize("name", ["irb140", "irb1400"])
def test_a_held_part_has_the_distances_of_the_same_shapes_on_the_tool(load, name):
    robot, cell = twin.load(name), load(AROUND + PART)
    (part,) = (one for one in cell.objects if one.name == "part")
    held = Clearance(robot, cell)
    held.attach("part", Q)
    T_flange_part = (
        np.linalg.inv(forward_kinematics(robot, Q)) @ np.linalg.inv(cell.T_world_base) @ part.T_world_frame
    )
    tool = Tool(None, 0.0, np.zeros(3), np.zeros(6), placed(part.shapes, T_flange_part))
    others = tuple(one for one in cell.objects if one.name != "part")
    on_tool = Clearance(robot, replace(cell, objects=others, tool=tool))
    for q in (Q, *configurations(robot)):
        require_equal(distances(held, q, part="tool"), distances(on_tool, q))
    np.testing.assert_allclose(held.reach, on_tool.reach, rtol=1e-12)


def test_a_part_that_is_left_has_the_distances_of_an_object_there(load):
    cell = load(AROUND + PART)
    (part,) = (one for one in cell.objects if one.name == "part")
    left, away = Clearance(ROBOT, cell), Q + 0.3
    left.attach("part", Q)
    left.detach("part", away)
    T_links = [link_poses(ROBOT, q)[ROBOT.tree.flange_joint] for q in (Q, away)]
    moved = T_links[1] @ np.linalg.inv(T_links[0])
    B = cell.T_world_base
    there = part._replace(T_world_frame=B @ moved @ np.linalg.inv(B) @ part.T_world_frame)
    others = tuple(one for one in cell.objects if one.name != "part")
    new = Clearance(ROBOT, replace(cell, objects=(*others, there)))
    for q in configurations(ROBOT):
        require_equal(distances(left, q), distances(new, q))
    np.testing.assert_allclose(left.reach, new.reach, rtol=1e-12)


def test_while_held_the_hand_is_not_judged_and_the_cell_is(load):
    tool = "[tool]\nshapes = [{ sphere = 0.02, at = [0, 0, 0.05] }]\n"
    rule = '[[pairs]]\nbetween = ["part", "ball"]\nmargin = 0.03\n'
    clearance = Clearance(ROBOT, load(AROUND + PART + tool + rule))
    lying = {pair: margin for pair, margin in clearance.pairs.items() if "part" in pair}
    links = ("link_1", "link_2", "link_3", "link_4", "link_5", "link_6")
    assert lying == dict.fromkeys([*((link, "part") for link in links), ("tool", "part")], 0.01)
    clearance.attach("part", Q)
    held = {frozenset(pair) - {"part"}: margin for pair, margin in clearance.pairs.items() if "part" in pair}
    assert held == {
        frozenset({name}): margin
        for name, margin in (
            ("base", 0.0), ("link_1", 0.0), ("link_2", 0.0), ("link_3", 0.0), ("link_4", 0.0),
            ("table", 0.01), ("ball", 0.03),
        )
    }  # fmt: skip
    clearance.detach("part", Q)
    assert {pair: margin for pair, margin in clearance.pairs.items() if "part" in pair} == lying


def test_a_rule_lets_a_part_touch_its_table(load):
    rule = '[[pairs]]\nbetween = ["part", "table"]\nmay_touch = true\n'
    clearance = Clearance(ROBOT, load(AROUND + PART + rule))
    clearance.attach("part", Q)
    assert ("table", "part") not in clearance.pairs
    assert ("ball", "part") in clearance.pairs
    with pytest.raises(CellError, match="are never judged"):  # neither of them is a part
        Clearance(ROBOT, load(AROUND + PART + rule.replace("part", "ball")))


def test_the_nearest_approach_of_a_long_part_is_that_of_brute_force(load):
    """The path of a point of the arm per turn of a joint grows with what it holds."""
    long = "[objects.part]\nbox = [0.02, 0.02, 0.8]\nat = [0.6, 0.5, 0.6]\nmass = 1\n"
    clearance = Clearance(ROBOT, load(AROUND + long))
    before = clearance.reach
    clearance.attach("part", Q)
    assert np.all(clearance.reach[:5] > before[:5] + 0.1)
    q = Q + np.linspace(0, 1, 200)[:, None] * np.array([0.5, 0.3, -0.4, 0.2, -0.3, 0.6])
    found = closest(clearance, np.arange(200.0), q, np.zeros(6))
    least = min(one.clearance for one in clearance.nearest_each(q))
    assert found.nearest.clearance <= least + 1e-4
    assert found.bound <= least
    assert found.nearest.clearance == pytest.approx(least, abs=2e-3)  # between the samples it may be less


def test_a_part_is_an_even_body_in_the_flange_frame(load):
    text = "[frames.here]\nat = [0.5, 0.1, 0.6]\nrpy_deg = [0, 0, 90]\n[objects.part]\n"
    clearance = Clearance(ROBOT, load(f'{text}frame = "here"\nmass = 3\nbox = [0.1, 0.2, 0.3]\n'))
    clearance.attach("part", Q)
    payload, T = clearance.payload("part"), forward_kinematics(ROBOT, Q)
    assert payload.mass == pytest.approx(3.0, rel=1e-15)
    np.testing.assert_allclose(T[:3, :3] @ payload.com + T[:3, 3], [0.5, 0.1, 0.6], atol=1e-14)
    sides = np.array([0.2, 0.1, 0.3])  # of the turned box along the base's axes
    expected = np.diag(3.0 / 12.0 * (np.sum(sides**2) - sides**2))
    np.testing.assert_allclose(T[:3, :3] @ payload.inertia @ T[:3, :3].T, expected, atol=1e-15)
    load_torque = twin.gravity_torque(ROBOT.with_payload(payload), Q) - twin.gravity_torque(ROBOT, Q)
    assert load_torque[0] == pytest.approx(0.0, abs=1e-12)
    lever = 0.5 * np.cos(Q[0]) + 0.1 * np.sin(Q[0]) - 0.07  # from axis 2, which is 70 mm before axis 1
    assert load_torque[1] == pytest.approx(-3.0 * 9.81 * lever, rel=1e-3)


def test_several_shapes_and_a_mesh_share_the_mass_by_their_volumes(load, tmp_path):
    """Two halves, one of them a mesh, are the whole box, wherever the arm takes it."""
    mesh = trimesh.creation.box((100, 200, 150))
    mesh.export(tmp_path / "half.stl")
    whole = "[objects.part]\nbox = [0.1, 0.2, 0.3]\nat = [0.5, 0, 0.6]\nmass = 3\n"
    halves = """[objects.part]
    mass = 3
    shapes = [{ box = [0.1, 0.2, 0.15], at = [0.5, 0, 0.675] },
              { mesh = "half.stl", unit = "mm", at = [0.5, 0, 0.525] }]
    """
    one, other = Clearance(ROBOT, load(whole)), Clearance(ROBOT, load(halves))
    for clearance in (one, other):
        clearance.attach("part", Q)
    a, b = one.payload("part"), other.payload("part")
    np.testing.assert_allclose(a.com, b.com, atol=1e-8)  # STL has single precision
    np.testing.assert_allclose(a.inertia, b.inertia, atol=1e-8)


def test_a_gripper_takes_the_nearest_part_within_its_reach(load):
    T = forward_kinematics(ROBOT, Q)
    x, y, z = (T[:3, 3] + 0.1 * T[:3, 2]).tolist()
    near = f"[objects.near]\nsphere = 0.02\nat = [{x}, {y}, {z + 0.06}]\nmass = 1\n"
    far = f"[objects.far]\nsphere = 0.02\nat = [{x}, {y}, {z - 0.1}]\nmass = 1\n"
    clearance, tip = Clearance(ROBOT, load(far + near)), np.eye(4)
    tip[2, 3] = 0.1
    distance, name = clearance.nearest_part(Q, tip)
    assert (name, distance) == ("near", pytest.approx(0.04, abs=1e-9))
    short = Gripper(clearance, within=0.039)
    assert short.switch(True, Q, tip) == "gripper: no part within 39 mm, near at 40 mm"
    assert (short.is_closed, short.held, short.payload) == (True, "", None)
    assert short.switch(True, Q, tip) == ""  # said once
    assert short.switch(False, Q, tip) == ""
    gripper = Gripper(clearance, within=0.041)
    assert gripper.switch(True, Q, tip) == "gripper: holds near"
    assert gripper.payload.mass == 1.0
    np.testing.assert_allclose(gripper.payload.com, T[:3, :3].T @ [0, 0, 0.06] + [0, 0, 0.1], atol=1e-12)
    assert gripper.switch(False, Q + 0.1, tip) == "gripper: leaves near"
    assert (gripper.held, gripper.payload) == ("", None)
    assert clearance.nearest_part(Q + 0.1, tip)[0] == pytest.approx(0.04, abs=1e-9)


def test_parts_of_a_file(load):
    cell = load(AROUND + PART)
    assert [one.mass for one in cell.objects] == [0.0, 0.0, 2.0]
    clearance = Clearance(ROBOT, cell)
    assert clearance.parts == {"part": 2.0}
    with pytest.raises(CellError, match="there is no part 'parts', did you mean 'part'"):
        clearance.attach("parts", Q)
    with pytest.raises(CellError, match="there is no part 'table'; objects with a mass are part"):
        clearance.detach("table", Q)
    for wrong in ("-1", "0", "nan", '"heavy"'):
        with pytest.raises(CellError, match=r"objects.part.mass: expected a number above 0"):
            load(AROUND + PART.replace("2.0", wrong))
