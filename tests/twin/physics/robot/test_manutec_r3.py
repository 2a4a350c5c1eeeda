"""The file of the Manutec r3 agrees with its source.

The tests compute the arm in the frames of the source, with y up, independently of the project's kernels.
The numbers come from the Modelica Standard Library, RobotR3 (BSD-3-Clause), models MechanicalStructure
and FullRobot.
"""

from itertools import pairwise

import numpy as np
import pytest

import twin
from tests.published import manutec_r3
from tests.support.manutec_events import Arm, Control, Motor, Simulation
from tests.support.peers import largest_relative_error, one_step
from twin.physics.robot.evaluation import uncompiled

# JOINTS lists the axis of each joint and its offset from the previous joint. BODIES lists the link, the mass,
# the centre of mass and the moments (xx, yy, zz, xy) of each body. The frames are at the joints and parallel
# to the world at q = 0, where y points up.
Y, X = (0, 1, 0), (1, 0, 0)
JOINTS = [
    (Y, (0, 0.351, 0)), (X, (0, 0.324, 0.3)), (X, (0, 0.65, 0)),
    (Y, (0, 0.414, -0.155)), (X, (0, 0.186, 0)), (Y, (0, 0.125, 0)),
]  # fmt: skip
BODIES = [
    (0, 1.0, (0, 0, 0), (0.001, 1.16, 0.001, 0)),
    (1, 56.5, (0.172, 0.205, 0), (2.58, 0.64, 2.73, -0.46)),
    (2, 26.4, (0.064, -0.034, 0), (0.279, 0.245, 0.413, -0.07)),
    (3, 28.7, (0, 0, 0), (1.67, 0.081, 1.67, 0)),
    (4, 5.2, (0, 0, 0), (1.25, 0.81, 1.53, 0)),
    (5, 0.5, (0.05, 0.05, 0.05), (0.001, 0.001, 0.001, 0)),
    (5, 15.0, (0.1, 0.25, 0.1), (0.001, 0.001, 0.001, 0)),
]
FROM_Y_UP = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])  # to the base axes of the robot file

# The library's reference results start from this initial state.
CURRENT = [0, -1.8880913340679804, -3.6788347723912715, -0.60042439319676211, -0.72427931539319579, 0]
SPRING = [0, 0.27415086170667075, 0.073678180544994837]  # rad, at the motors of axes 1 to 3


def turn(axis, q):
    c, s = np.cos(q), np.sin(q)
    if axis == X:
        return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def library_frames(q):
    """Return the axis, origin and rotation of each joint in the library's world frame; q may be complex."""
    p, R, frames = np.zeros(3), np.eye(3), []
    for (axis, way), angle in zip(JOINTS, q, strict=True):
        p = p + R @ way
        R = R @ turn(axis, angle)
        frames.append((R @ axis, p, R))
    return frames


def library_dynamics(q):
    """Return the mass matrix and the gravity torque from the Jacobians of the bodies."""
    frames = library_frames(q)
    M, g = np.zeros((6, 6), dtype=q.dtype), np.zeros(6, dtype=q.dtype)
    for link, mass, com, (xx, yy, zz, xy) in BODIES:
        _, p, R = frames[link]
        inertia = R @ np.array([[xx, xy, 0], [xy, yy, 0], [0, 0, zz]]) @ R.T
        J_v, J_w = np.zeros((2, 3, 6), dtype=q.dtype)
        for j, (axis, origin, _) in enumerate(frames[: link + 1]):
            J_v[:, j], J_w[:, j] = np.cross(axis, p + R @ com - origin), axis
        M += mass * J_v.T @ J_v + J_w.T @ inertia @ J_w
        g += mass * 9.81 * J_v[1]
    return M, g


def library_bias(q, qd):
    """Return h = Mdot qd - d(qd^T M qd / 2)/dq + g, with derivatives from complex steps."""
    step = 1e-30
    slopes = [library_dynamics(q + 1j * step * unit)[0].imag / step for unit in np.eye(6)]  # dM/dq_i
    Mdot = sum(speed * slope for speed, slope in zip(qd, slopes, strict=True))
    return Mdot @ qd - [qd @ slope @ qd / 2 for slope in slopes] + library_dynamics(q)[1]


@pytest.fixture(scope="module")
def bare():
    return uncompiled(twin.load("manutec_r3"))


@pytest.fixture(scope="module")
def loaded(bare):
    return uncompiled(bare.with_payload(manutec_r3.LOAD))


def test_the_flange_is_the_last_frame_of_the_library_with_z_along_axis_6(bare, rng):
    for q in rng.uniform(-3, 3, (5, 6)):
        T = twin.forward_kinematics(bare, q)
        _, p, R = library_frames(q)[-1]
        np.testing.assert_allclose(T[:3, 3], FROM_Y_UP @ p, rtol=0, atol=1e-15)
        np.testing.assert_allclose(T[:3, :3], FROM_Y_UP @ R @ FROM_Y_UP.T, rtol=0, atol=2e-15)


def test_mass_matrix_and_bias_match_the_table_of_the_library(loaded, rng):
    Q, QD = rng.uniform(-3, 3, (2, 8, 6))
    M, h, g = [], [], []
    for q, qd in zip(Q, QD, strict=True):
        M_q, g_q = library_dynamics(q)
        M, g, h = [*M, M_q], [*g, g_q], [*h, library_bias(q, qd)]
    assert largest_relative_error(twin.mass_matrix(loaded, Q), M) < 1e-14
    assert largest_relative_error(twin.gravity_torque(loaded, Q), g) < 1e-14
    assert largest_relative_error(twin.inverse_dynamics(loaded, Q, QD, np.zeros_like(Q)), h) < 1e-13


def test_the_engine_gives_the_same_acceleration_as_the_table_of_the_library(loaded, rng):
    q, qd, tau = rng.uniform(-2, 2, (3, 6)) * [[1], [1], [100]]
    with twin.Simulation(loaded) as simulation:
        step = one_step(simulation, q, qd, tau)
    M, _ = library_dynamics(q)
    assert largest_relative_error([step], [np.linalg.solve(M, tau - library_bias(q, qd))]) < 1e-12


def test_initial_currents_and_springs_hold_the_arm_as_published(loaded):
    drives, hold = loaded.drives, twin.gravity_torque(loaded, loaded.poses["start"])
    current = hold / drives.ratio / manutec_r3.TORQUE_CONSTANTS
    np.testing.assert_allclose(current, CURRENT, rtol=0, atol=4e-14)
    spring = drives.ratio[:3] * -hold[:3] / drives.stiffness[:3]
    np.testing.assert_allclose(spring, SPRING, rtol=0, atol=4e-14)


def test_drives_match_the_published_values_of_the_motors(loaded):
    """The source gives the values of axes 1 to 3 at the motor, which the ratio converts to the joint.

    The source gives the friction of axes 4 to 6 at the joint.
    """
    drives = loaded.drives
    N = np.array([-105, 210, 60, -99, 79.2, -99])
    first, wrist = slice(3), slice(3, 6)
    np.testing.assert_array_equal(drives.ratio, N)
    c, d = np.array([43, 8, 58]), np.array([0.005, 0.01, 0.04])
    Rv0, Rv1 = np.array([0.4, 0.5, 0.7]), np.array([0.13 / 160, 0.1 / 130, 0.2 / 130])
    rows = ("stiffness", c, 2), ("damping", d, 2), ("coulomb", Rv0, 1), ("viscous", Rv1, 2)
    for name, at_motor, power in rows:
        expected = at_motor * np.abs(N[first]) ** power
        np.testing.assert_allclose(getattr(drives, name)[first], expected, rtol=3e-16)
    assert np.all(np.isinf(drives.stiffness[wrist]))
    np.testing.assert_array_equal(drives.coulomb[wrist], [21.8, 30.1, 10.9])
    peak = [1, 1, 1, 1.22477064220183, 1.31561461794020, 1.54128440366972]
    np.testing.assert_allclose(drives.static / drives.coulomb, peak, rtol=1e-14)
    np.testing.assert_array_equal(drives.viscous[wrist], [9.8, 0.03, 3.92])
    rotors = [0.0013, 0.0013, 0.0013, 0.00016, 0.00018, 0.000043]
    np.testing.assert_allclose(np.diag(drives.reflected_inertia), N**2 * rotors, rtol=3e-16)
    assert drives.friction_at == ("motor",) * 3 + ("joint",) * 3


def test_the_move_takes_the_published_times(bare):
    move = manutec_r3.published_move(bare)
    assert move.acceleration_time == pytest.approx(0.117424242, abs=5e-10)
    assert move.duration == pytest.approx(1.356045002, abs=5e-10)
    assert move.duration - move.acceleration_time == pytest.approx(1.238620759, abs=5e-10)
    assert np.all((manutec_r3.INSTANTS > 0) & (move.duration + manutec_r3.REST > manutec_r3.INSTANTS))
    np.testing.assert_allclose(np.rad2deg(move.q0), [-60, 20, 90, 0, -110, 0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(np.rad2deg(move.q1), [60, -70, -35, 45, 110, 45], rtol=0, atol=1e-13)


# The published runs of the drive train, with friction's changes of mode as events.


MODES = {"F": 1, "S": 0, "B": -1}  # forward, stuck, backward: of the motors of axes 1 to 3, the joints 4 to 6
# fmt: off
CHANGES = {
    1: ("SBFSB", [0.000749, 1.354953, 1.483202, 1.618159]),
    2: ("SBFSBSFSBSB", [0.000629, 1.354177, 1.446085, 1.456996, 1.486799,
                        1.516478, 1.521938, 1.546593, 1.599031, 1.628160]),
    3: ("SBSFSBSBSB", [0.001546, 1.349720, 1.350380, 1.445045, 1.452268,
                       1.492577, 1.545988, 1.598731, 1.631914]),
    4: ("SFSBS", [0.004361, 1.348686, 1.352709, 1.444942]),
    5: ("SFBSB", [0.001963, 1.356847, 1.383938, 1.432874]),
    6: ("SFSF", [0.004667, 1.355057, 1.356847]),
}
# fmt: on
MOTORS = Motor(
    k=np.array(manutec_r3.TORQUE_CONSTANTS),
    w=np.array([4590.0, 5500.0, 5500.0, 6250.0, 6250.0, 7400.0]),
    damping=np.array([0.6, 0.6, 0.6, 0.55, 0.55, 0.27]),
)
CONTROL = Control(manutec_r3.KP, manutec_r3.KS, manutec_r3.TS)


def smooth(move):
    """A trapezoidal move as `Simulation` takes it: a function of one time, and the times of its kinks."""
    way, T, ramp = move.q1 - move.q0, move.duration, move.acceleration_time
    cruise = 1 / (T - ramp)

    def reference(t):
        if t < ramp:
            s, sd = cruise / ramp * t**2 / 2, cruise / ramp * t
        elif t < T - ramp:
            s, sd = cruise * (t - ramp / 2), cruise
        else:
            left = max(T - t, 0.0)
            s, sd = 1 - cruise / ramp * left**2 / 2, cruise / ramp * left
        return move.q0 + way * s, way * sd

    return reference, [ramp, T - ramp, T, T + manutec_r3.REST]


def largest_distance(changes, axis, sense, published):
    """How far at most a change of an axis is from its published time, in [s]; its modes are as published."""
    modes, times = published
    own = [change for change in changes if change.axis == axis]
    wanted = [(sense * MODES[before], sense * MODES[after]) for before, after in pairwise(modes)]
    assert [(change.before, change.after) for change in own] == wanted
    return np.max(np.abs([change.t for change in own] - np.array(times)))


def test_the_arm_is_where_the_reference_results_have_it_and_changes_its_modes_when_they_do():
    """Integrate the six axes with an event at each of the 34 changes, which takes 8 s."""
    robot = twin.load("manutec_r3").with_payload(manutec_r3.LOAD)
    arm = Arm(
        lambda q: twin.mass_matrix(robot, q), lambda q, qd: twin.inverse_dynamics(robot, q, qd, np.zeros(6))
    )
    reference, kinks = smooth(manutec_r3.published_move(robot))
    simulation = Simulation(arm, robot.drives, MOTORS, CONTROL, reference, kinks)
    state, changes = simulation.run(robot.poses["start"], manutec_r3.INSTANTS)
    # The error is that of the reference: seen 4e-9.
    np.testing.assert_allclose(state.q, manutec_r3.ANGLES, rtol=0, atol=1e-8)
    assert len(changes) == 34
    for axis, published in CHANGES.items():
        sense = -1 if axis == 1 else 1  # its motor turns against its joint; the others of CHANGES do not
        assert largest_distance(changes, axis, sense, published) < 1e-6
