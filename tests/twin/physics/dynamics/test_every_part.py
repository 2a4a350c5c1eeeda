"""Every function that takes a robot knows every part of it: each part alone, and all at once."""

from dataclasses import replace

import numpy as np
import pytest

import controllers
import twin
from tests.support.parts_of_an_arm import NAMES, arm_with, torques
from tests.support.sample_drives import uncoupled
from twin.base.errors import RobotError
from twin.physics.control.plant import AnalyticPlant
from twin.physics.dynamics.constrained import Plane
from twin.physics.engine.simulation import Simulation
from twin.physics.kinematics.forward import link_poses
from twin.physics.multibody.axis_torques import UserColumn
from twin.physics.robot.drives.motors import MotorLimits, available_torque, motor_side
from twin.physics.robot.evaluation import uncompiled
from twin.physics.trajectories.sampling import Reference, State, sample_semi_implicit

pytestmark = pytest.mark.slow("integrates motions")

DT = 1e-3
START = np.array([0.2, -0.1, 0.15, 0.4, 0.7, -0.5])


@pytest.fixture(scope="module", params=NAMES)
def robot(request, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp() / "columns"
    folder.mkdir(exist_ok=True)
    return arm_with(request.param, folder)


def states(rng):
    """Yield positions, speeds and accelerations: moving, at rest, and at rest in part."""
    for moving in (np.ones(6), np.zeros(6), np.array([1, 0, 1, 0, 0, 1])):
        for accelerated in (1.0, rng.integers(0, 2, 6)):
            q, qd = START + rng.uniform(-0.3, 0.3, 6), moving * rng.uniform(-1, 1, 6)
            yield q, qd, accelerated * rng.normal(size=6) * 5


def sliding(robot, qd, load):
    """Return the friction torque of sliding shafts, written out from the module's formula."""
    d = robot.drives
    w, transmitted = d.friction_matrix @ qd, d.transmission @ load
    fading = np.exp(-np.square(w / np.maximum(d.stribeck_speed, 1e-9)))
    level = d.coulomb + (d.static - d.coulomb) * fading + d.coulomb_per_load * np.abs(transmitted)
    level += d.viscous_root * np.sqrt(np.abs(w))
    F = level * np.sign(w) + d.viscous * w + d.viscous_difference * np.abs(w) + d.offset
    return d.friction_matrix.T @ F


def test_inverse_dynamics_is_arm_rotors_and_friction(robot, rng):
    q, qd, qdd = START, rng.uniform(0.2, 1, 6) * rng.choice([-1, 1], 6), rng.normal(size=6)
    load = twin.inverse_dynamics(robot.arm, q, qd, qdd)
    expected = load + robot.drives.reflected_inertia @ qdd + sliding(robot, qd, load)
    np.testing.assert_allclose(twin.inverse_dynamics(robot, q, qd, qdd), expected, rtol=0, atol=1e-11)
    M = twin.mass_matrix(robot.arm, q) + robot.drives.reflected_inertia
    np.testing.assert_allclose(twin.mass_matrix(robot, q), M, atol=1e-14)


def test_forward_dynamics_is_the_inverse_of_inverse_dynamics(robot, rng):
    for q, qd, qdd in states(rng):
        tau = twin.inverse_dynamics(robot, q, qd, qdd)
        lightest = np.min(np.linalg.eigvalsh(twin.mass_matrix(robot, q)))
        rounding = 1e-15 * np.max(np.abs(tau)) / lightest  # some 1e-11 for a wrist without rotors
        np.testing.assert_allclose(twin.forward_dynamics(robot, q, qd, tau), qdd, rtol=0, atol=rounding)


def test_a_step_of_forward_dynamics_is_that_of_model_and_engine(robot, rng):
    plant = AnalyticPlant(robot, DT)
    with Simulation(robot, time_step=DT) as engine:
        for q, qd, qdd in states(rng):
            tau = twin.inverse_dynamics(robot, q, qd, qdd) + rng.normal(size=6)
            after = qd + DT * twin.forward_dynamics(robot, q, qd, tau, time_step=DT)
            for one in (plant, engine):
                one.reset(q, qd)
                one.step(tau)
            np.testing.assert_allclose(after, plant.state()[1], rtol=0, atol=5e-14)
            np.testing.assert_allclose(after, engine.state()[1], rtol=0, atol=1e-11)


def test_energy_changes_by_the_power_of_motors_and_friction(robot, rng):
    q, qd = START, rng.uniform(0.2, 1, 6)
    tau = twin.gravity_torque(robot, q) + 10 * rng.normal(size=6)
    qdd, e = twin.forward_dynamics(robot, q, qd, tau), 1e-5
    ahead, behind = (twin.energy(robot, q + s * e * qd, qd + s * e * qdd) for s in (1, -1))
    load = twin.inverse_dynamics(robot.arm, q, qd, qdd)
    column, others = 0.0, tuple(one for one in robot.tree.torques if one.symbols != ("cable",))
    if len(others) < len(robot.tree.torques):
        plain = uncompiled(replace(robot.arm, tree=replace(robot.tree, torques=others)))
        column = load - twin.inverse_dynamics(plain, q, qd, qdd)
    power = (tau - sliding(robot, qd, load) - column) @ qd
    assert (ahead - behind) / (2 * e) == pytest.approx(power, rel=1e-7, abs=1e-6)


def test_moments_along_the_axes_are_the_torques_on_the_arm(robot, rng):
    q, qd, qdd = next(iter(states(rng)))
    wrenches = twin.joint_wrenches(robot, q, qd, qdd).joints
    turns = np.array(robot.tree.kinds)[:, None] == "revolute"
    along = np.where(turns, wrenches[:, 3:], wrenches[:, :3]) * robot.tree.axes
    along = np.sum(along, axis=-1) @ robot.embedding
    np.testing.assert_allclose(along, twin.inverse_dynamics(robot.arm, q, qd, qdd), rtol=0, atol=1e-10)


def test_a_cylinder_relieves_its_joint_of_force_and_moment(irb140, tmp_path, rng):
    """The ends of the cylinder move with their links, also if offset along the axis; others have none."""
    cylinder = torques(tmp_path)["cylinder"]
    with_it = uncompiled(replace(irb140, tree=replace(irb140.tree, torques=(cylinder,))))
    q, qd, qdd = next(iter(states(rng)))
    found, without = (twin.joint_wrenches(arm, q, qd, qdd, frame="base") for arm in (with_it, irb140))
    zero, now = link_poses(irb140, np.zeros(6)), link_poses(irb140, q)
    ends = []
    for link, end in zip((0, 1), cylinder.ends, strict=True):  # given from the origin of link 2, at q = 0
        carried = np.linalg.solve(zero[link], np.append(zero[1, :3, 3] + end, 1.0))
        ends.append((now[link] @ carried)[:3])
    along = ends[1] - ends[0]
    f = (900.0 - 2000.0 * (np.linalg.norm(along) - 0.45)) * along / np.linalg.norm(along)
    expected = np.zeros((6, 6))
    expected[1] = -np.concatenate([f, np.cross(ends[1] - now[1, :3, 3], f)])
    np.testing.assert_allclose(found.joints - without.joints, expected, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(found.base, without.base)


@pytest.mark.parametrize("law", ["computed_torque", "dob"])
def test_an_exact_model_follows_its_reference_exactly(robot, law):
    """With friction that grows with the load, too, because the law keeps the load of the period before."""
    path = twin.quintic(START, START + 0.01 * np.array([1, -1, 1, 1, -1, 1]), duration=0.06)
    samples = sample_semi_implicit(path, DT)
    log = twin.run_closed_loop(AnalyticPlant(robot, DT), controllers.make(law, robot), samples)
    assert not np.any(log.saturated)
    np.testing.assert_allclose(log.q, log.q_ref, rtol=0, atol=1e-13)


def test_laws_hold_the_arm_at_rest(robot):
    still = State(0.0, START, np.zeros(6), np.zeros(6)), Reference(START, np.zeros(6), np.zeros(6))
    weight = twin.gravity_torque(robot, START) + robot.drives.friction_matrix.T @ robot.drives.offset
    for law in ("computed_torque", "dob", "cascade", "adaptive"):
        tau = controllers.make(law, robot)(*still)
        np.testing.assert_allclose(tau, weight, rtol=0, atol=1e-10, err_msg=law)
    tau = controllers.make("pd_gravity", robot)(*still)
    np.testing.assert_allclose(tau, twin.gravity_torque(robot, START), rtol=0, atol=1e-10)


@pytest.mark.parametrize("robot", ["static", "load", "coupled motors", "motor limits", "all"], indirect=True)
def test_time_optimal_motions_keep_torques_and_speeds_at_a_reversal(robot):
    s = np.linspace(0, 1, 31)[:, None]
    path = START + 0.3 * np.sin(np.pi * s) * [1, -1, 1, 0.5, 0.5, 1] + 0.02 * s
    motion = twin.time_optimal(robot, path)
    q, qd, qdd = motion(np.linspace(0, motion.duration, 2001)[1:-1])
    motors = MotorLimits.of(robot.drives, robot.tau_max)
    tau = motor_side(motors.coupling, 1, twin.inverse_dynamics(robot, q, qd, qdd))
    share = np.abs(tau) / available_torque(motors, tau, motor_side(motors.coupling, 0, qd))
    assert 0.95 < np.max(share) < 1.01
    assert np.max(np.abs(qd) / robot.qd_max) < 1.001


@pytest.mark.parametrize("part", ["static", "column"])
def test_time_optimal_motion_of_one_axis_is_exact(irb140, tmp_path, part):
    """The torque is the limit at all times, while static friction fades and while a column brakes."""
    (tmp_path / "brake.py").write_text("def brake(q, qd, qdd):\n    return [qd[0], *[0.0] * 5]\n")
    column = UserColumn.of_file("brake", tmp_path / "brake.py", "brake", 40.0)
    drives = replace(irb140.drives, static=3 * irb140.drives.coulomb, stribeck_speed=0.02)
    robot = irb140.with_drives("rigid", drives)
    if part == "column":
        robot = uncompiled(replace(robot, tree=replace(robot.tree, torques=(column,))))
    s = np.linspace(0, 1, 31)[:, None]
    motion = twin.time_optimal(robot, START + 1.5 * s * np.eye(6)[0] + 1e-3 * s**2)
    q, qd, qdd = motion(np.linspace(0, motion.duration, 4001)[1:-1])
    share = np.abs(twin.inverse_dynamics(robot, q, qd, qdd)[:, 0]) / robot.drive_torque_max[0]
    assert np.max(share) == pytest.approx(1.0, abs=2e-3)


def test_elastic_gears_act_as_rigid_ones_or_are_refused(irb140):
    rigid, elastic = irb140.with_drives("rigid"), irb140.with_drives("elastic")
    q, qd, qdd = START, np.full(6, 0.3), np.ones(6)
    for function, given in ((twin.inverse_dynamics, (q, qd, qdd)), (twin.energy, (q, qd))):
        np.testing.assert_array_equal(function(rigid, *given), function(elastic, *given))
    with pytest.raises(RobotError, match=r"forward_dynamics needs the state of the motors .* are elastic"):
        twin.forward_dynamics(elastic, q, qd, qdd)


def test_operational_space_has_the_rotors_and_no_friction(irb140):
    q, qd, still = START, np.full(6, 0.3), np.zeros(6)
    found = twin.operational_space(irb140.with_drives("rigid"), q, qd)
    J = twin.jacobian(irb140, q)
    mobility = J @ np.linalg.solve(twin.mass_matrix(irb140.with_drives("rigid"), q), J.T)
    np.testing.assert_allclose(found.Lambda @ mobility, np.eye(6), rtol=0, atol=1e-9)
    rubbing, arm = (
        twin.operational_space(robot, q, qd)
        for robot in (irb140.with_drives("rigid", replace(irb140.drives, rotor_inertia=0.0)), irb140)
    )
    np.testing.assert_allclose(rubbing.mu, arm.mu, rtol=1e-12)
    np.testing.assert_allclose(twin.operational_space(irb140, q, still).mu, 0.0, atol=1e-12)


def test_constraints_are_refused_where_they_would_decide_on_friction(irb140):
    rigid, moving, resting = irb140.with_drives("rigid"), np.full(6, 0.3), np.zeros(6)
    held = twin.dynamics.surface_constraint(rigid, START, moving, Plane([0, 0, 0.4], [0, 0, 1]))
    tau = twin.inverse_dynamics(rigid, START, moving, np.ones(6))
    found = twin.dynamics.constrained_forward_dynamics(rigid, START, moving, tau, held)
    back = twin.inverse_dynamics(rigid, START, moving, found.qdd, wrench=found.wrench)
    np.testing.assert_allclose(back, tau, rtol=0, atol=1e-10)
    drives = replace(irb140.drives, coulomb_per_load=0.1)
    for robot, qd, why in (
        (rigid, resting, "shafts with friction that rest"),
        (irb140.with_drives("rigid", drives), moving, "friction that grows with the load"),
        (irb140.with_drives("elastic"), moving, "needs the state of the motors"),
    ):
        with pytest.raises(RobotError, match=why):
            twin.dynamics.constrained_forward_dynamics(robot, START, qd, tau, held)


def test_unknown_motors_are_limited_by_the_effort_of_the_joint(irb140):
    effort = np.array([282.0, 755, np.inf, 45, 60, 38])
    robot = replace(irb140, tau_max=effort).with_drives(
        "rigid", replace(uncoupled(irb140).drives, motor_torque_max=np.inf)
    )
    np.testing.assert_array_equal(robot.drive_torque_max, effort)
    assert robot.joints_without_torque_limit == ("joint_3",)
    with pytest.raises(RobotError, match="no torque limit is known of joint_3 of robot 'irb140'"):
        twin.time_optimal(robot, np.linspace(START, START + 0.1, 5))
    plant = AnalyticPlant(robot)
    plant.reset(START)
    samples = twin.sample(twin.hold(START, 0.005), DT)
    log = twin.run_closed_loop(plant, lambda state, reference: np.full(6, 1e3), samples)
    np.testing.assert_array_equal(np.max(np.abs(log.tau), axis=0), np.minimum(effort, 1e3))
