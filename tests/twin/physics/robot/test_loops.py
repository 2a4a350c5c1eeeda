"""Closed loops in closed form: how far they are open and from folding flat, and models that ignore them.

Locked joints: Pinocchio's reduced model, the whole arm at rest there, files, logs and the engine.
"""

import re
import warnings
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

import twin
from scenarios.judging.motion_range import random_positions
from scenarios.options import locked_joints
from scenarios.setup import Setup
from scenarios.shell.command_line import main
from tests.support.foreign_urdf import chain, fingers, frame, joint, link, mimic, robot
from tests.support.parts_of_an_arm import with_followers
from tests.support.peers import Pinocchio, Reduced, largest_relative_error
from tests.support.random_trees import interpreted, random_urdf
from tests.support.refusals import refused
from tests.support.sample_loads import BODY
from tests.support.small_robots import one_step_error
from twin.base.errors import IdentificationError, LimitError, ModelWarning, RobotError, UnknownNameError
from twin.data.identification.robot_file import require_place
from twin.physics.multibody.axis_torques import Spring
from twin.physics.multibody.tree import Loop, frozen
from twin.physics.robot import locked, loops
from twin.physics.robot.evaluation import uncompiled
from twin.physics.robot.limits import check_folding, check_position
from twin.physics.robot.loading import remarks
from twin.physics.robot.loops import link_frames, open_chain, without_loop_links
from twin.physics.robot.robot import dh_poses
from twin.physics.trajectories.sampling import Samples, check_limits
from urdf.schema import FactsError


@pytest.fixture(scope="module")
def arm():
    return uncompiled(twin.load("irb1400"))


def test_the_loop_of_the_facts(arm, rng):
    """The rod's upper eye, 0.600 m from its lower one, and the eye of the housing, 0.170 m behind axis 3."""
    (loop,) = arm.loops
    assert loop.name == "parallelogram"
    assert [arm.tree.links[joint] for joint in loop.joints] == ["link_rod", "link_3"]
    np.testing.assert_allclose(loop.points, [[0, 0, 0.600], [-0.170, 0, 0]], rtol=0, atol=1e-15)
    for q in random_positions(arm, rng, 20):  # it is closed wherever the pendant leads
        assert np.max(np.abs(loops.gaps(arm, arm.tree_positions(q)))) < 1e-15


def test_gaps_of_two_loops_of_any_tree(tmp_path, robot, rng):
    """Against Pinocchio: the first link's point less the second's."""
    assert loops.gaps(robot, np.zeros(6)).shape == (0, 3)
    urdf = tmp_path / "tree.urdf"
    urdf.write_text(random_urdf(rng, 6))
    two = tuple(Loop(f"loop{k}", (k, k + 2), frozen(rng.normal(size=(2, 3)))) for k in range(2))
    tree = replace(twin.load(urdf), loops=two)
    peer, q = Pinocchio(urdf, tree.tree.names), rng.normal(size=6)
    for loop, gap in zip(two, loops.gaps(tree, q), strict=True):
        first, second = (
            (peer.forward_kinematics(q, tree.tree.links[joint]) @ [*point, 1])[:3]
            for joint, point in zip(loop.joints, loop.points, strict=True)
        )
        np.testing.assert_allclose(gap, first - second, rtol=0, atol=1e-14)


def test_kernels_of_the_loop_compute_the_gap(irb1400, rng):
    """A loop of other points is other code, though the tree is the same."""
    (loop,), q, gap, arm = irb1400.loops, rng.uniform(-3, 3, 8), np.empty(3), irb1400
    arm.kernels.loop_gaps(q, gap)
    np.testing.assert_allclose(gap, loops.gaps(arm, q)[0], rtol=0, atol=1e-14)
    points = loop.points.copy()
    points[0, 0] += 0.1
    elsewhere = replace(arm, loops=(loop._replace(points=frozen(points)),))
    elsewhere.kernels.loop_gaps(np.zeros(8), gap)
    np.testing.assert_allclose(gap, [0.1, 0, 0], rtol=0, atol=1e-15)


# ---- folding -------------------------------------------------------------------------------------


def test_clearance_of_any_loop(arm, rng):
    """The clearance is that of link 2's joint from the line through link 1's joint and the shared point."""
    peer = Pinocchio(arm.urdf, arm.tree.names)
    for loop in (arm.loops[0], Loop("odd", arm.loops[0].joints, frozen(rng.normal(size=(2, 3))))):
        for q in random_positions(arm, rng, 10):
            q_tree = arm.embedding @ q
            rod, housing = (peer.forward_kinematics(q_tree, link) for link in ("link_rod", "link_3"))
            along = rod[:3, :3] @ loop.points[0] / np.linalg.norm(loop.points[0])
            across = housing[:3, 3] - rod[:3, 3]
            expected = np.linalg.norm(across - across.dot(along) * along)
            assert loops.clearance(arm, loop, q) == pytest.approx(expected, rel=1e-12)
    in_line = np.deg2rad([10, -40, 50, 0, 0, 0])  # lever and rod
    assert loops.clearance(arm, arm.loops[0], in_line) < 1e-16


def turned(elbow_deg, lower_deg=10.0):
    """A position with that angle between the arms."""
    return np.deg2rad([30.0, lower_deg, lower_deg + elbow_deg, 20.0, 10.0, 5.0])


@pytest.mark.parametrize("side", [-1, 1])
def test_range_between_the_arms_is_75_degrees_on_both_sides(arm, side):
    inside, rounded, outside = (turned(side * (75 + more), -side * 30.0) for more in (-1e-6, 4e-8, 1e-6))
    for check in (check_folding, check_position):
        check(arm, inside)
        check(arm, rounded)
        with pytest.raises(LimitError, match=r"joint_elbow \(q3 - q2\) would be at -?75 deg"):
            check(arm, outside)


def test_a_fold_names_joint_angle_time_range_link_and_distance(arm):
    q = np.array([turned(0), turned(-60), turned(-76, 30), turned(-80, 30)])
    samples = Samples(0.5 * np.arange(4.0), q, np.zeros((4, 6)), np.zeros((4, 6)))
    with pytest.raises(LimitError) as error:
        check_limits(arm, samples)
    assert str(error.value) == (
        "joint_elbow (q3 - q2) would be at -76 deg (-1.32645 rad) at t = 1 s (sample 2), "
        "its range is -75 deg (-1.309 rad) to 75 deg (1.309 rad): "
        "link_rod would be 0.0411 m from folding parallelogram flat"
    )


def test_the_earliest_of_position_speed_and_fold_is_named(arm):
    for first, named in ((0, "joint_elbow"), (1, "joint_6 would move"), (2, "joint_1 would be")):
        q, qd, k = np.tile(turned(0), (5, 1)), np.zeros((5, 6)), [4, 4, 4]
        k[first] = 1
        q[k[0]], qd[k[1], 5], q[k[2], 0] = turned(-76, 30), 99.0, 3.0
        with pytest.raises(LimitError, match=rf"{named} .*\(sample 1\)"):
            check_limits(arm, Samples(np.arange(5.0), q, qd, np.zeros((5, 6))))


def test_a_joint_beyond_its_range_is_reported_first_and_nan_folds(arm):
    beyond, nan = np.deg2rad([0, 0, 80, 0, 0, 0]), np.array([0, np.nan, 0, 0, 0, 0])
    for check, q, told in (
        (check_position, beyond, "joint_3 would be at 80 deg"),
        (check_position, np.deg2rad([0, 0, 135, 0, 0, 0]), r"joint_3 would be at 135 deg [^?]*$"),
        (check_position, np.deg2rad([0, 0, 145, 0, 0, 0]), r"in radians, are these degrees\?$"),
        (check_folding, beyond, r"joint_elbow .* would be at 80 deg"),
        (check_folding, nan, r"joint_elbow \(q3 - q2\) would be at nan"),
        (check_folding, nan[[0, 2, 1, 3, 4, 5]], r"joint_elbow \(q3 - q2\) would be at nan"),
    ):
        with pytest.raises(LimitError, match=told):
            check(arm, q)


def test_passive_joint_is_printed_as_a_combination_of_joints(arm):
    for row, told in (
        ([0, 1, -1, 0, 0, 0], "q2 - q3"),
        ([0, -1, -1, 0, 0, 0], "- q2 - q3"),
        ([0.5, 0, 2, 0, -0.25, 0], "2 q3 + 0.5 q1 - 0.25 q5"),
    ):
        G = arm.embedding.copy()
        G[arm.passive[0]] = row
        odd = replace(arm, embedding=frozen(G))
        with pytest.raises(LimitError, match=rf"joint_elbow \({re.escape(told)}\) would be at"):
            check_folding(odd, np.array([1.0, 2.0, 4.0, 0, -3.0, 0]))


def test_message_names_the_loop_of_the_passive_joint_if_there_is_one(arm):
    with pytest.raises(LimitError, match=r"to 75 deg \(1\.309 rad\)$"):
        check_folding(replace(arm, loops=()), turned(76))
    other = Loop("other", (0, 1), frozen(np.ones((2, 3))))
    with pytest.raises(LimitError, match=r"link_rod would be 0\.0411 m from folding parallelogram flat$"):
        check_folding(replace(arm, loops=(other, *arm.loops)), turned(76))


def test_the_rod_alone_beyond_its_range(arm):
    """The limits of the rod are checked, whatever those of the elbow are."""
    wide = replace(arm, passive_max=frozen([2.0, arm.passive_max[1]]), passive_min=frozen([-2.0, -1.0]))
    with pytest.raises(LimitError, match=r"joint_rod \(q2 - q3\) would be at 76 deg .* link_rod would be"):
        check_folding(wide, turned(-76))
    with pytest.raises(LimitError, match=r"joint_rod \(q2 - q3\) would be at -60 deg"):
        check_folding(wide, turned(60))


# ---- models that ignore a loop, against Pinocchio on the tree without lever and rod ----------------


@pytest.fixture
def light(arm):
    """Pinocchio's tree with lever and rod that weigh nothing."""
    peer = Pinocchio(arm.urdf, arm.tree.names)
    for name in ("joint_3", "joint_rod"):
        peer.model.inertias[peer.model.getJointId(name)] = pin.Inertia.Zero()
    peer.data = peer.model.createData()
    return peer


def rows(function, *vectors):
    return np.array([function(*sample) for sample in zip(*vectors, strict=True)])


def agrees(robot, peer, rng):
    q, qd, qdd = rng.uniform(-1, 1, (3, 5, robot.n))
    for function, vectors in (
        (twin.inverse_dynamics, (q, qd, qdd)),
        (twin.mass_matrix, (q,)),
        (twin.coriolis_matrix, (q, qd)),
        (twin.gravity_torque, (q,)),
        (twin.forward_kinematics, (q,)),
        (twin.jacobian, (q,)),
    ):
        expected = rows(getattr(peer, function.__name__), *vectors)
        assert largest_relative_error(function(robot, *vectors), expected) < 1e-12, function.__name__


def test_without_the_mass_of_lever_and_rod(arm, light, rng):
    robot = without_loop_links(arm)
    agrees(uncompiled(robot), Reduced(arm, light), rng)
    lost = {name for i, name in enumerate(arm.tree.links) if not robot.tree.inertias[i].any()}
    assert lost == {"link_lever", "link_rod"}
    assert robot.loops == arm.loops
    assert arm.tree.inertias.all(axis=0)[0], "the true robot keeps its masses"


def test_the_open_chain_is_the_six_joints_up_to_the_flange(arm, light, rng):
    """Pinocchio's own chain, lever and rod locked and weightless."""
    robot = open_chain(arm)
    assert robot.loops == ()
    assert robot.kernels is not arm.kernels
    robot = uncompiled(robot)
    peer = Pinocchio(arm.urdf, robot.tree.names)
    locked = [light.model.getJointId(name) for name in ("joint_3", "joint_rod")]
    peer.model = pin.buildReducedModel(light.model, locked, np.zeros(8))
    peer.data = peer.model.createData()
    chain = ("joint_1", "joint_2", "joint_elbow", "joint_4", "joint_5", "joint_6")
    peer.order = [peer.model.joints[peer.model.getJointId(name)].idx_q for name in chain]
    peer.back = np.argsort(peer.order)
    agrees(robot, peer, rng)


def test_dh_angles_of_the_open_chain_are_its_joint_angles(arm, rng):
    """Uncoupled: forward kinematics by the table, and the closed-form inverse, meet the tree."""
    robot = uncompiled(open_chain(arm))
    np.testing.assert_array_equal(robot.dh_coupling, np.eye(6))
    q = rng.uniform(-1, 1, (20, 6))
    T = twin.forward_kinematics(robot, q)
    theta = twin.kinematics.dh_from_joint_angles(robot, q)
    np.testing.assert_allclose(dh_poses(robot.dh, theta)[:, -1], T, rtol=0, atol=1e-14)
    found = twin.inverse_kinematics(robot, T, near=q, limits=False)
    np.testing.assert_allclose(found, q, rtol=0, atol=1e-9)  # some poses are near singular ones
    np.testing.assert_allclose(twin.forward_kinematics(robot, found), T, rtol=0, atol=1e-14)


def test_the_open_chain_has_no_limit_between_its_arms(arm):
    apart = np.deg2rad([0, -70, 70, 0, 0, 0])
    check_position(open_chain(arm), apart)
    with pytest.raises(LimitError, match="joint_elbow"):
        check_position(without_loop_links(arm), apart)
    for side in (-1, 1):
        check_folding(open_chain(arm), side * np.deg2rad([0, 0, 80, 0, 0, 0]))


def test_payload_and_mounting_stay(arm, rng):
    q = rng.uniform(-1, 1, 6)
    for model in (without_loop_links, open_chain):
        loaded = model(arm.mounted("wall").with_payload(BODY))
        again, bare = model(arm).mounted("wall").with_payload(BODY), model(arm.mounted("wall"))
        for found, expected in ((loaded, again), (loaded.with_payload(None), bare)):
            g, expected = (twin.gravity_torque(uncompiled(one), q) for one in (found, expected))
            np.testing.assert_allclose(g, expected, rtol=1e-14, atol=1e-12)


def test_open_chain_of_a_robot_without_a_loop_is_itself(robot):
    for model in (without_loop_links, open_chain):
        np.testing.assert_array_equal(model(robot).tree.inertias, robot.tree.inertias)
        np.testing.assert_array_equal(model(robot).embedding, robot.embedding)


def test_followers_stay_in_the_open_chain(arm, rng):
    """They move with the same posture as before, and keep their masses."""
    whole = uncompiled(with_followers(arm))
    light, chain, bare = (
        uncompiled(one) for one in (without_loop_links(arm), open_chain(whole), without_loop_links(whole))
    )
    q = rng.uniform(-0.5, 0.5, 6)
    carried = whole.embedding[list(whole.tree.carriers(whole.tree.flange_joint))]
    torques = twin.gravity_torque(bare, q)
    assert np.max(np.abs(torques - twin.gravity_torque(light, q))) > 1.0
    np.testing.assert_allclose(carried.T @ twin.gravity_torque(chain, carried @ q), torques, atol=1e-12)


def test_a_branched_tree_and_dependent_motors_make_no_chain(arm, tmp_path):
    path = tmp_path / "random.urdf"
    path.write_text(random_urdf(np.random.default_rng(1), 6))
    tree = twin.load(path)
    carriers = len(tree.tree.carriers(tree.tree.flange_joint))
    assert carriers < 6
    told = rf"robot 'random' has {carriers} joints from the base to its flange, expected 6"
    with pytest.raises(RobotError, match=told):
        open_chain(tree)
    G = arm.embedding.copy()
    G[arm.tree.names.index("joint_elbow")] = [0, 1, 0, 0, 0, 0]
    with pytest.raises(RobotError, match=r"its 6 motors do not move all joints from the base"):
        open_chain(replace(arm, embedding=G))


SLIDE = link("car", 0.7) + joint("slide", "link_2", "car", "prismatic", "0 0.6 0.8", rpy="0.3 0.2 0.1")
ROD = link("rod", 0.5) + joint("rod_joint", "link_1", "rod", axis="0 1 0", inside=mimic("joint_2", -1.0, 0.2))
TEXT = robot(chain(4), frame("hand", "link_4"), fingers("hand"), frame("tcp", "hand"), SLIDE, ROD)
HELD = {"left_finger_joint": 0.3, "joint_2": -0.7, "slide": 0.4}
FOLLOWING = {"right_finger_joint": -0.3, "rod_joint": 0.9}
FACTS = """
name = "mine"
title = "an arm"
urdf = "arm.urdf"
source = "test"

[joints]
names = ["joint_1", "joint_2", "joint_3", "joint_4", "slide"]
source = "test"

[joints.locked]
left_finger_joint = 0.3

[poses.up]
q = [0.1, -0.7, 0.2, 0.3, 0.4]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(TEXT)
    return path


def reduced(path, names):
    """Return Pinocchio's arm with the joints of `HELD` locked, and the finger that follows one of them."""
    peer, at = Pinocchio(path, names), HELD | FOLLOWING
    q, model = np.zeros(peer.model.nq), peer.model
    for name, position in at.items():
        q[model.joints[model.getJointId(name)].idx_q] = position
    peer.model = pin.buildReducedModel(model, [model.getJointId(name) for name in at], q)
    peer.data, peer.order = peer.model.createData(), [0, 1, 2]
    peer.back = peer.order
    return peer


def test_a_locked_arm_is_the_reduced_model_of_pinocchio(file, tmp_path, rng):
    arm = interpreted(twin.load(file, locked=HELD))
    assert arm.joint_names == ("joint_1", "joint_3", "joint_4")
    assert arm.tool_frame == "tcp"
    assert dict(arm.locked) == pytest.approx(HELD | FOLLOWING, rel=1e-15)
    with_load = interpreted(locked(twin.load(file).with_payload(twin.Payload(2.0, [0, 0, 0.1])), HELD))
    words = ["export-model", str(file), "--urdf", str(tmp_path / "fixed.urdf"), "--lock"]
    assert main([*words, *(f"{name}={position}" for name, position in HELD.items())]) == 0
    read = interpreted(twin.load(tmp_path / "fixed.urdf", tool_frame="tcp"))
    peer, written = reduced(file, arm.joint_names), Pinocchio(tmp_path / "fixed.urdf", arm.joint_names)
    for q, qd, qdd in rng.uniform(-2, 2, (3, 3, 3)):
        M, tau = peer.mass_matrix(q), peer.inverse_dynamics(q, qd, qdd)
        for other in (arm, read):
            np.testing.assert_allclose(twin.mass_matrix(other, q), M, rtol=0, atol=1e-12 * M.max())
            np.testing.assert_allclose(twin.inverse_dynamics(other, q, qd, qdd), tau, rtol=0, atol=1e-11)
        np.testing.assert_allclose(written.mass_matrix(q), M, rtol=0, atol=1e-12 * M.max())
        at = link_frames(arm, q)
        for name, (body, T) in arm.frames.items():
            R, p = (np.array(at.R[body]), np.array(at.o[body])) if body >= 0 else (np.eye(3), np.zeros(3))
            T_peer = peer.forward_kinematics(q, name)
            np.testing.assert_allclose(R @ T[:3, :3], T_peer[:3, :3], rtol=0, atol=1e-12)
            np.testing.assert_allclose(R @ T[:3, 3] + p, T_peer[:3, 3], rtol=0, atol=1e-12)
        J = peer.jacobian(q, "tcp")
        lever = 0.1 * peer.forward_kinematics(q, "tcp")[:3, 2]
        added = 2.0 * 9.81 * (J[:3] + np.cross(J[3:].T, lever).T)[2]
        difference = twin.gravity_torque(with_load, q) - twin.gravity_torque(arm, q)
        np.testing.assert_allclose(difference, added, rtol=0, atol=1e-11)
    with twin.Simulation(arm) as simulation:
        assert one_step_error(simulation, rng, 3) < 1e-11


def test_a_locked_arm_is_the_whole_arm_at_rest_there(irb140, load, rng):
    """Springs go with their joints; the lock of the wrist's middle turns what is beyond it; rods move on."""
    rods = load(robot(chain(3), ROD))
    fewer, at = (
        interpreted(locked(rods, {"joint_3": 0.5})),
        np.array([[0.3, -0.4, 0.5], [1, 2, 0], [3, -1, 0]]),
    )
    expected = twin.inverse_dynamics(rods, *at)[:2]
    np.testing.assert_allclose(twin.inverse_dynamics(fewer, *at[:, :2]), expected, rtol=0, atol=1e-13)
    assert (fewer.passive, fewer.passive_max.shape, fewer.followers) == ((2,), (1,), (2,))
    springs = (Spring(1, 300.0, 20.0), Spring(3, 7.0, -2.0))
    whole = interpreted(replace(irb140, tree=replace(irb140.tree, torques=springs)))
    arm, keep = interpreted(locked(whole, {"joint_2": 0.4, "joint_5": -0.9})), [0, 2, 3, 5]
    for q, qd, qdd in rng.uniform(-1, 1, (5, 3, 4)):
        at = np.zeros((3, 6))
        at[:, keep], at[0, [1, 4]] = (q, qd, qdd), (0.4, -0.9)
        expected = twin.inverse_dynamics(whole, *at)[keep]
        np.testing.assert_allclose(twin.inverse_dynamics(arm, q, qd, qdd), expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(arm.poses["test_1"], irb140.poses["test_1"][keep])
    np.testing.assert_array_equal(arm.qd_max, irb140.qd_max[keep])


def test_a_robot_toml_and_a_log_keep_locked_joints(file, tmp_path):
    (tmp_path / "robot.toml").write_text(FACTS)
    arm = twin.load(tmp_path)
    assert dict(arm.locked) == {"left_finger_joint": 0.3, "right_finger_joint": -0.3}
    assert "'slide' move freely" in remarks(twin.load(file))[0]
    assert remarks(arm) == []  # robot.toml names the joint 'slide', so it is meant to move
    more = twin.load(tmp_path, locked={"joint_2": -0.7, "slide": 0.4})
    np.testing.assert_array_equal(more.poses["up"], [0.1, 0.2, 0.3])
    assert dict(more.locked) == pytest.approx(HELD | FOLLOWING, rel=1e-15)
    require_place(arm, tmp_path / "found")
    with pytest.raises(
        IdentificationError, match=r"does not lock .*joint_2.*expected them in its \[joints.lock"
    ):
        require_place(more, tmp_path / "found")
    words = tuple(f"{name}={position}" for name, position in HELD.items())
    for place, lock in ((file, words), (tmp_path, words[1:])):
        plant = interpreted(Setup(robot=str(place), lock=lock).nominal_robot())
        samples = twin.sample(twin.hold([0.1, 0.2, 0.3], 0.003), 1e-3)
        log = twin.run_closed_loop(twin.AnalyticPlant(plant), lambda *_: np.zeros(3), samples)
        log.save(tmp_path / "run.npz")
        with warnings.catch_warnings():  # that fingers move freely is no longer true
            warnings.simplefilter("error", ModelWarning)
            again = twin.Log.load(tmp_path / "run.npz").robot
        assert (again.joint_names, dict(again.locked)) == (more.joint_names, dict(more.locked))
        np.testing.assert_array_equal(again.inertias, more.inertias)


def test_an_arm_with_a_gripper_is_identified_with_its_fingers_locked(tmp_path, capsys):
    """By `--lock`, and by a robot.toml; the written arm has a fixed gripper."""
    path, t = tmp_path / "arm.urdf", np.arange(0, 4, 0.02)
    path.write_text(robot(chain(2), fingers("link_2")))
    arm = interpreted(twin.load(path, locked={"left_finger_joint": 0.3}))
    phase = 2 * np.pi * np.array([[0.3, 0.5], [0.8, 0.4]]) * t[:, None, None] + [[0, 1], [2, 0]]
    w = 2 * np.pi * np.array([[0.3, 0.5], [0.8, 0.4]])
    q, qd, qdd = (np.sum(0.5 * w**k * np.sin(phase + k * np.pi / 2), axis=1) for k in range(3))
    tau = twin.inverse_dynamics(arm, q, qd, qdd) + 1e-3 * np.random.default_rng(1).normal(size=q.shape)
    table = tmp_path / "measured.csv"
    np.savetxt(table, np.column_stack([t, q, tau]), delimiter=",", header="t,q1,q2,tau1,tau2", comments="")
    toml = FACTS.partition("[poses")[0].replace(', "joint_3", "joint_4", "slide"', "")
    (tmp_path / "robot.toml").write_text(toml)
    words = ["identify", str(table), "--robot"]
    assert main([*words, str(path), "--lock", "finger=0.3"]) == 2
    assert "no joint 'finger' to lock" in capsys.readouterr().err
    assert main([*words, str(tmp_path), "--out", str(tmp_path / "found")]) == 0, capsys.readouterr()
    found = interpreted(twin.load(tmp_path / "found")).with_drives("rigid")
    assert (found.joint_names, dict(found.locked)) == (arm.joint_names, {})
    difference = twin.inverse_dynamics(found, q, qd, qdd) - twin.inverse_dynamics(arm, q, qd, qdd)
    assert np.max(np.abs(difference)) < 0.01


def test_a_joint_without_mass_that_is_locked_leaves_the_dynamics(file, tmp_path):
    """As fingers whose links have no <inertial>: PyBullet's and Pinocchio's arm with them fixed."""
    weightless = fingers("hand").replace(link("left_finger", 0.1), link("left_finger", None))
    weightless = weightless.replace(link("right_finger", 0.1), link("right_finger", None))
    file.write_text(robot(chain(3), frame("hand", "link_3"), weightless))
    whole = twin.load(file)
    assert whole.inertia_fault.startswith("joint 'left_finger_joint' moves no mass; lock it, or give a link")
    with pytest.raises(RobotError, match="has no dynamics: joint 'left_finger_joint' moves no mass"):
        twin.mass_matrix(whole, np.zeros(4))
    bare = tmp_path / "bare.urdf"
    bare.write_text(robot(chain(3), frame("hand", "link_3")))
    arm, q = interpreted(locked(whole, {"left_finger_joint": 0.01})), [0.3, -0.4, 0.5]
    expected = Pinocchio(bare, arm.joint_names).mass_matrix(q)
    np.testing.assert_allclose(twin.mass_matrix(arm, q), expected, rtol=0, atol=1e-13)
    still = locked(whole, {"joint_1": 0.2})
    assert still.inertia_fault == whole.inertia_fault


def test_what_cannot_be_locked(file, irb140, irb1400, tmp_path):
    arm = twin.load(file)
    assert locked(arm, arm.n) is arm  # all its axes stay
    endless = replace(arm, q_max=np.full(arm.n, np.inf))
    refused(
        (lambda: locked(arm, {"joint_1": 2.5}), "locked at 2.5, expected a position of -2 to 2 rad"),
        (lambda: locked(arm, {"slide": np.nan}), "locked at nan, expected a position of -2 to 2 m"),
        (lambda: locked(endless, {"slide": np.inf}), "slide cannot be locked at inf, expected a position"),
        (lambda: locked(irb1400, {"joint_1": 0.0}), "joints without a motor"),
        (lambda: locked(irb140, {"joint_6": 0.0}).with_drives("rigid"), "only a robot.toml with [joints.loc"),
        (lambda: locked(arm, dict.fromkeys(arm.joint_names[:4], 0.0)), "no joint moves its tool"),
        error=RobotError,
    )
    with pytest.raises(UnknownNameError, match=r"no joint 'joint_5' to lock, did you mean .*: known are"):
        locked(arm, {"joint_5": 0.0})
    with pytest.raises(UnknownNameError, match="'rod_joint' to lock, it follows 'joint_2': known are"):
        locked(arm, {"rod_joint": 0.0})
    with pytest.raises(UnknownNameError, match="'slide' to lock, it is locked: known are joint_1"):
        locked(locked(arm, {"slide": -2.0}), {"slide": 0.5})
    (tmp_path / "robot.toml").write_text(FACTS.replace("= 0.3\n", '= "closed"\n'))
    with pytest.raises((RobotError, FactsError), match=r"joints\.locked\.left_finger_joint: expected a fin"):
        twin.load(tmp_path)
    with pytest.raises(ValueError, match="--lock slide: expected NAME=POSITION, in rad or m"):
        locked_joints(["slide"])
