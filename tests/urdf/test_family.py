"""A contract over the arms that no other test takes: kinematics, dynamics, drives, scenarios."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import twin
from scenarios.commands.validate import REPRESENTATIVE
from scenarios.excitation import CONDITION
from tests.support import dh_arms, tasks
from tests.support.effort_rule import BEYOND_FLANGE, OFF_AXIS_6
from tests.support.peers import Pinocchio, Reduced
from twin.abb.rapid import check, interpret, parse
from twin.data.identification.excitation import excitation_use, stored_excitation
from twin.physics.kinematics.inverse import inverse_kinematics
from twin.physics.robot.evaluation import uncompiled
from twin.studies.cell import Clearance

pytestmark = pytest.mark.slow("builds and compiles arms")

ARMS = [name for name in twin.robot_names() if name not in REPRESENTATIVE]
PROGRAM = """MODULE square
  PERS tooldata gripper := [TRUE,[[0,0,100],[1,0,0,0]],[1,[0,0,50],[1,0,0,0],0,0,0]];
  CONST robtarget corner := [[{x},{y},{z}],[0,0,1,0],[0,0,0,0],[9E9,9E9,9E9,9E9,9E9,9E9]];
  PROC main()
    ConfJ\\Off; ConfL\\Off;
    MoveAbsJ [[0,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]], v1000, z50, gripper;
    MoveJ Offs(corner,0,0,50), vmax, z10, gripper;
    MoveL corner, v200, fine, gripper;
    MoveL Offs(corner,0,{side},0), v500, z5, gripper;
    MoveC Offs(corner,{side},{side},0), Offs(corner,{side},0,0), v500, z5, gripper;
    MoveL corner, v500, fine, gripper;
  ENDPROC
ENDMODULE
"""


@pytest.fixture(scope="module", params=ARMS)
def robot(request):
    return uncompiled(twin.load(request.param))


def loaded(robot):
    return robot.with_payload(twin.Payload(robot.rating.payload, (OFF_AXIS_6, 0, BEYOND_FLANGE)))


def random_q(robot, count):
    return dh_arms.random_poses_of(robot, np.random.default_rng(51), count)[0]


def test_flange_and_tree_are_where_pinocchio_puts_them(robot):
    """Pinocchio reads the URDF by itself: poses to 1e-14 m, torques of the whole tree to 1e-12."""
    peer = Reduced(robot, Pinocchio(robot.urdf, robot.tree.names))
    for q in random_q(robot, 30):
        T = peer.forward_kinematics(q)
        np.testing.assert_allclose(twin.forward_kinematics(robot, q), T, rtol=0, atol=1e-14)
        qd, qdd = np.random.default_rng(1).normal(size=(2, robot.n))
        expected = peer.inverse_dynamics(q, qd, qdd)
        tau = twin.inverse_dynamics(robot, q, qd, qdd)
        assert np.max(np.abs(tau - expected)) < 1e-12 * np.max(np.abs(expected))


# Joint origins of public URDFs, x and z from joint to joint at q = 0; the axes are z, y, y, x, y, x.
PUBLISHED = {
    # abb_irb120_support, ros-industrial/abb 59e17fb; that of the IRB 1200,
    # ros-industrial/abb_experimental 051741c
    "irb120": [(0, 0), (0, 0.290), (0, 0.270), (0, 0.070), (0.302, 0), (0.072, 0)],
    "irb1200": [(0, 0.3991), (0, 0), (0, 0.448), (0, 0.042), (0.451, 0), (0.082, 0)],
    # abb_irb1600_support, ros-industrial/abb 09a4fee
    "irb1600_10": [(0, 0), (0.15, 0.4865), (0, 0.700), (0.300, 0), (0.300, 0), (0.065, 0)],
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_joints_put_the_flange_there(name):
    """To 1e-15 m, at ten poses. Arms with parallelograms have other joints there."""
    robot = uncompiled(twin.load(name))
    for q in random_q(robot, 10):
        T = np.eye(4)
        for (x, z), axis, angle in zip(PUBLISHED[name], "zyyxyx", q, strict=True):
            step = np.eye(4)
            step[:3, :3], step[:3, 3] = Rotation.from_euler(axis, angle).as_matrix(), (x, 0, z)
            T = T @ step
        T[:3, :3] = T[:3, :3] @ Rotation.from_euler("y", 90, degrees=True).as_matrix()
        np.testing.assert_allclose(twin.forward_kinematics(robot, q), T, rtol=0, atol=1e-15)


def test_the_reach_is_that_of_the_lengths(robot):
    """The reach is that of the wrist's centre; the angle between the arms takes 1.4 % off the IRB 2400's."""
    a, d4 = robot.dh.a, robot.dh.d[3]
    stretched = abs(a[0]) + abs(a[1]) + np.hypot(a[2], d4)
    if robot.loops:
        assert 0.98 * stretched < robot.rating.reach < stretched
    else:
        assert robot.rating.reach == pytest.approx(stretched, abs=0.0035)


def test_inverse_kinematics_has_every_solution_with_its_configuration(robot):
    q = random_q(robot, 200)
    T = twin.forward_kinematics(robot, q)
    signs = dh_arms.geometry(robot, q)
    regular = np.min(np.abs(signs), axis=0) > 1e-3
    every = inverse_kinematics(robot, T, limits=False)
    assert np.max(dh_arms.pose_errors(robot, every, T)) < 1e-13
    row = np.tensordot([4, 2, 1], np.array(signs) < 0, 1)
    here = dh_arms.distance_mod_turn(every[np.arange(len(q)), row][:, None], q)
    assert np.max(here[regular]) < 1e-8
    allowed = inverse_kinematics(robot, T)[np.arange(len(q)), row]
    assert not np.isnan(allowed[regular]).any()  # the ranges admit what they were drawn from
    found = np.isfinite(every[..., 0])
    assert set(np.sum(found, axis=1)) <= {4, 8}
    assert set(row) == set(range(8)) or robot.loops


def test_motors_hold_the_arm_with_its_payload_and_reach_the_limits(robot):
    drives = robot.drives
    assert np.all(np.abs(np.diag(drives.motor_matrix)) * robot.qd_max < drives.motor_speed_max)
    assert np.all(drives.torque_max >= robot.tau_max * (1 - 1e-12))
    assert np.all(drives.static >= drives.coulomb)
    q = random_q(robot, 200)
    held = np.abs(twin.gravity_torque(uncompiled(loaded(robot)), q)) + drives.static
    assert np.all(np.max(held, axis=0) < drives.torque_max)


def test_poses_are_in_their_ranges_and_the_tour_stays_on_one_branch(robot):
    for q in robot.poses.values():
        assert np.all((robot.q_min <= q) & (q <= robot.q_max))
    branches = {tuple(np.sign(dh_arms.geometry(robot, robot.poses[name]))) for name in robot.tour}
    assert len(branches) == 1
    assert all(abs(robot.poses[name][4]) > 0.3 for name in robot.tour)


def test_engine_and_model_agree_in_every_mode(robot, rng):
    """To round-off, over driven steps with the rated payload: ideal drives, then gears and friction."""
    for mode in ("ideal", "rigid", "elastic"):
        arm = uncompiled(loaded(robot).with_drives(mode))
        q, qd = random_q(robot, 1)[0], 0.2 * robot.qd_max * rng.uniform(-1, 1, 6)
        tau = twin.gravity_torque(arm, q) + 0.3 * robot.tau_max * rng.uniform(-1, 1, 6)
        plant = twin.AnalyticPlant(arm, 5e-4)
        with twin.Simulation(arm, time_step=5e-4) as engine:
            for one in (plant, engine):
                one.reset(q, qd)
                for _ in range(10):
                    one.step(tau)
            np.testing.assert_allclose(engine.state(), plant.state(), rtol=0, atol=1e-10)


def test_a_scenario_follows_its_motion_with_a_payload():
    settings = {"robot": "irb2600", "drives": "rigid", "payload": "1,0.05,0,0.05"}
    run = tasks.executed("joint_tracking", duration=0.2, time_step=0.002, **settings)
    assert run.error is None
    assert len(run.metrics) >= 8
    assert not [metric for metric in run.metrics if metric.passes is False]


def test_a_program_runs_within_the_ranges(robot):
    """A square of a tenth of the reach, approached at vmax: its plan is within speeds and torques."""
    reach = 1e3 * robot.rating.reach
    text = PROGRAM.format(x=0.55 * reach, y=-0.1 * reach, z=0.5 * reach, side=0.1 * reach)
    armed = uncompiled(robot.with_drives("rigid"))
    program = interpret(parse(text, "square.mod"), armed)
    assert program.fault is None, program.fault
    plan, fault = check(program, armed)
    assert fault is None, fault
    t = np.linspace(0, plan.motion.duration, 301)
    _, qd, _ = plan.motion(t)
    assert np.max(np.abs(qd) / robot.qd_max) <= 1 + 1e-9
    assert 0.3 * reach / 1e3 / 5 < plan.time < 10
    corner = program.segments[2].q[-1]
    tool = twin.forward_kinematics(robot, corner) @ [0, 0, 0.1, 1]
    np.testing.assert_allclose(tool[:3], np.array([0.55, -0.1, 0.5]) * reach / 1e3, rtol=0, atol=1e-9)


def test_the_stored_excitation_determines_the_base_parameters(robot):
    motion = stored_excitation(robot)
    assert motion is not None
    use = excitation_use(robot, *motion(np.arange(0, motion.period, 0.02)))
    assert use.condition < CONDITION / (10 if robot.loops else 20)  # parts of a loop move alike
    assert max(use[1:]) <= 1


def test_covers_clear_each_other_in_every_named_pose(robot):
    clearance = Clearance(robot, twin.Cell.empty())
    for name, q in robot.poses.items():
        nearest = clearance.nearest(q)
        assert nearest is not None
        assert nearest.clearance > 0, (name, nearest.text())
