"""Compliant surfaces: their geometry against coal, their force against own integration, MuJoCo and energy."""

import re

import coal
import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from twin.dynamics import Environment, check_contact, pushes, surface

import controllers
import twin
from tests.support.peers import MuJoCo, Pinocchio
from tests.support.sample_loads import BODY, TOOL
from twin.physics.dynamics.environment import signed_distance
from twin.physics.dynamics.equation_of_motion import energy
from twin.physics.engine.simulation import Simulation
from twin.physics.kinematics.forward import jacobian
from twin.physics.robot.drives.motors import ForceSensor, Sensors

Q = np.array([0.3, 0.4, -0.2, 0.5, 0.7, -0.4])
ROBOT = twin.load("irb140")
P = twin.forward_kinematics(ROBOT, Q, TOOL)[:3, 3]
PLACE = "at={0},{1},{2} rpy_deg=20,-30,50"
TILT = Rotation.from_euler("xyz", [20, -30, 50], degrees=True).as_matrix()


def text(kind, more="stiffness=1e4", depth=0.0):
    """A surface of each kind that touches the tool at P from below, `depth` deep."""
    x, y, z = P + np.array([0, 0, depth])
    return {
        "plane": f"plane=0.1,-0.2,1 at={x},{y},{z}",
        "sphere": f"sphere=0.4 at={x},{y},{z - 0.4}",
        "cylinder": f"cylinder=0.2 from={x - 1},{y},{z - 0.2} to={x + 1},{y},{z - 0.2}",
        "box": f"box=1,1,0.2 at={x},{y},{z - 0.1} rpy_deg=0,0,30",
    }[kind] + f" {more}"


KINDS = ("plane", "sphere", "cylinder", "box")


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        ("sphere=0.2 at={0},{1},{2}", coal.Sphere(0.2)),
        (f"box=0.3,0.4,0.6 {PLACE}", coal.Box(0.3, 0.4, 0.6)),
        ("cylinder=0.15", coal.Cylinder(0.15, 0.5)),
    ],
    ids=["sphere", "box", "cylinder"],
)
def test_distance_and_normal_are_those_of_coal(given, shape):
    """A small sphere around each point gives coal's distance, also at edges and corners, and inside."""
    p0, rng = np.array([0.1, 0.2, 0.3]), np.random.default_rng(3)
    if given.startswith("cyl"):
        ends = [",".join(map(str, p0 + s * TILT[:, 2] * 0.25)) for s in (-1, 1)]
        given += f" from={ends[0]} to={ends[1]}"
    row = surface(given.format(*p0) + " stiffness=1")
    ball, request = coal.Sphere(1e-3), coal.DistanceRequest(True, True)
    request.gjk_tolerance = request.epa_tolerance = 1e-10
    inside, n = 0, np.empty(3)
    for p in p0 + rng.uniform(-0.5, 0.5, (200, 3)):
        result, d = coal.DistanceResult(), signed_distance(row, p, n)
        place = coal.Transform3s(TILT, p0)
        expected = coal.distance(shape, place, ball, coal.Transform3s(np.eye(3), p), request, result) + 1e-3
        if expected < 0 and given.startswith("cyl"):  # coal's depth in a smooth body is too large
            x = TILT.T @ (p - p0)
            expected = max(np.hypot(x[0], x[1]) - 0.15, abs(x[2]) - 0.25)
        assert d == pytest.approx(expected, abs=1e-7)
        moved = [signed_distance(row, p + 1e-6 * e, np.empty(3)) for e in np.eye(3)]
        if d > 0.01:
            np.testing.assert_allclose((np.array(moved) - d) / 1e-6, n, atol=1e-4)
        assert np.linalg.norm(n) == pytest.approx(1.0, abs=1e-12)
        inside += d < 0
    assert inside > 3


def test_centres_have_a_normal():
    n = np.empty(3)
    for given in ("sphere=0.1", "box=0.1,0.1,0.1"):
        assert signed_distance(surface(f"{given} stiffness=1"), np.zeros(3), n) < 0
        assert np.all(np.isfinite(n))
    row = surface("cylinder=0.1 from=0,0,-1 to=0,0,1 stiffness=1")
    assert signed_distance(row, np.zeros(3), n) == -0.1
    np.testing.assert_allclose(np.linalg.norm(n), 1.0)


def test_frame_of_the_coordinates_places_a_surface():
    T, n, m = np.eye(4), np.empty(3), np.empty(3)
    T[:3, :3], T[:3, 3] = TILT, (0.1, -0.3, 0.2)
    for kind in KINDS:
        here, there = surface(text(kind)), surface(text(kind), T)
        for p in np.random.default_rng(1).uniform(-1, 1, (20, 3)):
            d = signed_distance(here, p, n)
            assert signed_distance(there, T[:3, :3] @ p + T[:3, 3], m) == pytest.approx(d, abs=1e-14)
            np.testing.assert_allclose(m, T[:3, :3] @ n, atol=1e-14)


def contact_by_hand(p, v, omega, n, offset, k, d, mu, slip, tip):
    """The wrench of a plane `n.x = offset` on a ball around p, after the textbook."""
    depth = tip - (n @ p - offset)
    if depth <= 0:
        return np.zeros(6)
    arm = -tip * n
    v = v + np.cross(omega, arm)
    normal = max(k * depth - d * (n @ v), 0.0)
    v_t = v - (n @ v) * n
    f = normal * n - mu * normal * v_t / np.sqrt(v_t @ v_t + slip**2)
    return np.array([*f, *np.cross(arm, f)])


@pytest.mark.parametrize("plant", [Simulation, twin.AnalyticPlant])
def test_run_equals_an_integration_with_pinocchio(plant):
    """A payload slides on a tilted plane under its weight; dynamics, pose and Jacobian are Pinocchio's."""
    robot = ROBOT.with_payload(BODY)
    peer, tool = Pinocchio(ROBOT.urdf, ROBOT.tree.names), TOOL
    more = "stiffness=4e3 damping=30 friction=0.4 slip=0.05 tip=0.02"
    world = Environment((), [surface(text("plane", more, -0.021))], tool)
    law = controllers.make("pd_gravity", robot, bandwidth=8.0)
    reference = twin.sample(twin.quintic(Q, Q + np.array([0.2, 0.25, 0, 0, 0.1, 0]), 0.5), 1e-3)
    log = twin.run_closed_loop(plant(robot), law, reference, environment=world)
    n = np.array([0.1, -0.2, 1.0]) / np.linalg.norm([0.1, -0.2, 1.0])
    offset, q, qd, touched = n @ (P - [0, 0, 0.021]), Q.copy(), np.zeros(6), 0
    for k in range(len(reference.t)):
        np.testing.assert_allclose(log.q[k], q, rtol=0, atol=1e-11)
        T, J = peer.forward_kinematics(q), peer.jacobian(q)
        arm = T[:3, :3] @ tool[:3, 3]
        V = J @ qd
        v = V[:3] + np.cross(V[3:], arm)
        F = contact_by_hand(T[:3, 3] + arm, v, V[3:], n, offset, 4e3, 30, 0.4, 0.05, 0.02)
        np.testing.assert_allclose(log.wrench[k], F, rtol=0, atol=1e-7)
        touched += F.any()
        at_flange = np.array([*F[:3], *(F[3:] + np.cross(arm, F[:3]))])
        h = twin.inverse_dynamics(robot, q, qd, 0 * q)
        qdd = np.linalg.solve(twin.mass_matrix(robot, q), log.tau[k] - h + J.T @ at_flange)
        qd = qd + 1e-3 * qdd
        q = q + 1e-3 * qd
    assert touched > 300
    assert np.max(np.abs(log.wrench[:, 0])) > 5


def test_run_on_a_sphere_is_that_of_mujoco():
    """A tendon of MuJoCo from the sphere's centre that resists only below its radius is the same surface."""
    spec, point, radius, k = mujoco.MjSpec.from_file(str(ROBOT.urdf)), P - [0, 0, 0.5], 0.5, 3e3
    tool = np.eye(4)
    tool[:3, 3] = 0.0, 0.0, 0.1
    point = twin.forward_kinematics(ROBOT, Q, tool)[:3, 3] - [0, 0.05, radius]
    at = MuJoCo(ROBOT.urdf)
    at._at(Q)
    body = at.model.nbody - 1
    T_body = np.eye(4)
    T_body[:3, :3], T_body[:3, 3] = at.data.xmat[body].reshape(3, 3), at.data.xpos[body]
    local = np.linalg.inv(T_body) @ twin.forward_kinematics(ROBOT, Q, tool)
    spec.worldbody.add_site(name="centre", pos=point)
    spec.body(at.model.body(body).name).add_site(name="tool", pos=local[:3, 3])
    tendon = spec.add_tendon(stiffness=[k, 0, 0], springlength=[radius, 1e3], range=[0, 1e3])
    tendon.wrap_site("centre")
    tendon.wrap_site("tool")
    model = spec.compile()
    off = mujoco.mjtDisableBit
    model.opt.disableflags |= int(off.mjDSBL_CONTACT) | int(off.mjDSBL_LIMIT) | int(off.mjDSBL_EULERDAMP)
    model.opt.timestep, data = 1e-3, mujoco.MjData(model)
    world = Environment((), [surface(f"sphere={radius} at={','.join(map(str, point))} stiffness={k}")], tool)
    law = controllers.make("pd_gravity", ROBOT, bandwidth=20.0)
    reference = twin.sample(twin.quintic(Q, Q + np.array([0, 0.2, 0.1, 0, 0, 0]), 0.4), 1e-3)
    log = twin.run_closed_loop(twin.AnalyticPlant(ROBOT), law, reference, environment=world)
    data.qpos[:] = Q
    for tau, q, qd in zip(log.tau, log.q, log.qd, strict=True):
        np.testing.assert_allclose(data.qpos, q, rtol=0, atol=1e-9)
        np.testing.assert_allclose(data.qvel, qd, rtol=0, atol=1e-7)
        data.qfrc_applied[:] = tau
        mujoco.mj_step(model, data)
    assert np.count_nonzero(log.wrench[:, 2] > 0.2) > 50


@pytest.mark.parametrize("kind", KINDS)
def test_elastic_contact_keeps_the_energy(kind):
    """Kinetic, potential and spring energy change by the work of the motors, up to the step's first order."""
    robot, errors = ROBOT.with_payload(BODY), []
    row = surface(text(kind, "stiffness=2e3 tip=0.01", -0.012))
    world = Environment((), [row], TOOL)
    for dt in (4e-4, 2e-4, 1e-4):
        reference = twin.sample(twin.quintic(Q, Q + np.array([0, 0.15, 0, 0, 0, 0]), 0.3), dt)
        law = controllers.make("pd_gravity", robot, bandwidth=15.0, period=dt)
        log = twin.run_closed_loop(twin.AnalyticPlant(robot, dt), law, reference, environment=world)
        depth = np.maximum(world.depths(robot, log.q)[0][:, 0], 0.0)
        k = round(0.75 * np.argmax(depth))  # on the way down
        spring = 0.5 * 2e3 * depth[k] ** 2
        gained = energy(robot, log.q[k], log.qd[k]) - energy(robot, log.q[0], log.qd[0])
        errors.append(gained + spring - dt * np.sum(log.tau[:k] * (log.qd[:k] + log.qd[1 : k + 1])) / 2)
    assert spring > 0.05
    assert abs(2 * errors[2] - errors[1]) < 2e-3 * spring


CASES = [
    ("irb140", "ideal", "plane", 1), ("irb140", "ideal", "sphere", 2), ("irb140", "rigid", "box", 1),
    ("irb140", "elastic", "cylinder", 1), ("irb1400", "ideal", "plane", 1), ("irb1400", "rigid", "sphere", 1),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::twin.base.errors.DriveWarning")
@pytest.mark.parametrize(("name", "drives", "kind", "steps"), CASES)
def test_engine_is_the_model_in_contact(name, drives, kind, steps):
    """Payload, tool, slanted mounting, friction and a push; rollouts equal the closed loop to the bit."""
    robot = twin.load(name).mounted(20.0).with_payload(BODY).with_drives(drives)
    rough = f"stiffness=5e3 damping=20 friction={0.3 if drives != 'ideal' else 0.0} tip=0.01"
    p = twin.forward_kinematics(robot, Q, TOOL)[:3, 3]
    row = surface(text(kind, rough, -0.011))
    row[15:18] += p - P
    world = Environment(pushes("0.1:0.3 5,-3,2 tool"), [row], TOOL)
    check_contact(robot, world, [Q], 1e-3)
    law = controllers.make("computed_torque", robot if drives != "elastic" else robot.with_drives("rigid"))
    down = Q + np.array([0.1, 0.15, 0.05, 0, 0.1, 0])
    reference = twin.sample(twin.quintic(Q, down, 0.8), 1e-3 * steps)
    with Simulation(robot) as simulation:
        log = twin.run_closed_loop(simulation, law, reference, environment=world, steps_per_period=steps)
    plant = twin.AnalyticPlant(robot)
    model = twin.run_closed_loop(plant, law, reference, environment=world, steps_per_period=steps)
    rolled = twin.run_rollouts(robot, law, reference, environment=world, steps_per_period=steps, warn=False)
    assert np.max(np.linalg.norm(log.wrench[:, :3], axis=1)) > 10
    assert log.model_residual() < 1e-12 * max(1.0, np.max(np.abs(np.diff(log.qd, axis=0))))
    np.testing.assert_array_equal(rolled.q, model.q)
    np.testing.assert_array_equal(rolled.tau, model.tau)
    if drives == "ideal":
        np.testing.assert_allclose(log.q, model.q, rtol=0, atol=1e-11)


def reading(state, reference, parameters, memory, model):
    memory[0, :] = state.wrench
    return 0.0 * state.q + parameters[0]


def test_force_sensor_measures_the_wrench_with_weight_offset_noise_and_delay():
    """Readings equal those computed by hand in numpy, and those of a rollout to the bit."""
    robot, arm = ROBOT.mounted("wall").with_payload(BODY), np.array([0.01, -0.02, 0.05])
    offset = (1.0, -2.0, 3.0, 0.1, 0.2, -0.3)
    push = Environment(pushes("0:1 10,20,-5,1,2,3"), T_flange_tool=TOOL)
    law = twin.ControlLaw(robot, reading, [0.0], memory=1, signals={"wrench": 0})
    reference = twin.sample(twin.hold(Q, 0.02), 1e-3)

    def runs(**sensor):
        sensors = Sensors(force=ForceSensor(**sensor), delay=2, seed=5)
        log = twin.run_closed_loop(
            twin.AnalyticPlant(robot), law, reference, environment=push, sensors=sensors
        )
        rolled = twin.run_rollouts(robot, law, reference, environment=push, sensors=sensors, noise_seeds=[5])
        np.testing.assert_array_equal(rolled.law["wrench"], log.law_signals["wrench"])
        return log, log.law_signals["wrench"]

    log, found = runs(offset=offset, load=(2.0, *arm))
    for k in range(len(found)):
        R = twin.forward_kinematics(robot, log.q[max(k - 2, 0)], TOOL)[:3, :3]
        weight = 2.0 * robot.gravity
        expected = log.wrench[0] + [*(R @ offset[:3] + weight), *(R @ offset[3:] + np.cross(R @ arm, weight))]
        np.testing.assert_allclose(found[k], expected, rtol=0, atol=1e-12)
    _, noisy = runs(noise=0.5)
    residual = noisy[2:] - log.wrench[0]
    assert 0.3 < residual[:, :3].std() < 0.7
    assert 0.03 < residual[:, 3:].std() < 0.07
    free = Sensors(force=ForceSensor(load=(2.0, 0, 0, 0)))
    alone = twin.run_closed_loop(twin.AnalyticPlant(robot), law, reference, sensors=free)
    np.testing.assert_allclose(alone.law_signals["wrench"][:, :3], 2.0 * robot.gravity + 0 * found[:, :3])
    assert alone.surroundings is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("stiffness=1", "surface: expected one of the keys plane, sphere, cylinder, box"),
        ("plane=0,0,1", "table [surface] lacks the key 'stiffness'"),
        ("plane=0,0,0 stiffness=1", "expected an axis that is not 0"),
        ("plane=0,0 stiffness=1", "surface.plane: expected 3 numbers, got 2"),
        ("plane=0,0,1 stiffness=nan", "surface.stiffness: expected a number above 0, got nan"),
        ("plane=0,0,1 stiffness=-1", "surface.stiffness: expected a number above 0, got -1"),
        ("plane=0,0,inf stiffness=1", "surface.plane: expected finite numbers, got inf"),
        ("sphere=0 stiffness=1", "surface.sphere: expected a number above 0, got 0"),
        ("box=1,1,0 stiffness=1", "expected sides above 0"),
        ("cylinder=1 from=0,0,0 to=0,0,0 stiffness=1", "expected an axis that is not 0"),
        ("cylinder=1 from=0,0,0 stiffness=1", "lacks the key 'to'"),
        ("sphere=1 stiffness=1 friction=-0.1", "no number below 0"),
        ("sphere=1 stiffness=1 slip=0", "surface.slip: expected a number above 0"),
        ("sphere=1 stifness=1", "unknown key 'stifness' in table [surface]: known are sphere, at, stiffness"),
        ("sphere=1 stiffness=1 stiffness=2", "with different keys, got 'stiffness=2'"),
        ("sphere stiffness=1", "expected pairs key=number,number,... with different keys, got 'sphere'"),
        ("sphere=1 stiffness=1 from=0,0,0", "unknown key 'from'"),
        ("plane=0,0,1 stiffness=1 rpy_deg=1,0,0", "unknown key 'rpy_deg'"),
    ],
)
def test_invalid_surface_is_refused(given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        surface(given)


def test_contact_that_cannot_be_simulated_is_refused():
    def refused(row, message, q=(Q,), robot=ROBOT):
        with pytest.raises(ValueError, match=re.escape(message)):
            check_contact(robot, Environment((), [surface(row)], TOOL), q, 1e-3)

    refused(text("plane", depth=0.002), "the tool starts 1.95 mm inside surface 1, a plane")
    refused(
        text("plane", depth=-0.2),
        "surface 1, a plane, is out of reach: the motion comes no nearer than 195 mm",
    )
    refused(text("plane", "stiffness=1e9"), "surface 1, a plane, is too stiff for steps of 1 ms and ")
    refused(text("sphere", "stiffness=10 damping=1e5"), "surface 1, a sphere, is too stiff")
    check_contact(ROBOT, Environment(pushes("0:1 1,1,1")), [Q], 1e-3)


def test_largest_stiffness_that_is_admitted_works_and_four_times_it_runs_away():
    """The tool falls on the plane with ideal drives, and at twice the limit of stability it is thrown off."""
    with pytest.raises(ValueError, match="at most stiffness") as caught:
        check_contact(ROBOT, Environment((), [surface(text("plane", "stiffness=1e9"))], TOOL), [Q], 1e-3)
    most = float(re.search(r"stiffness=([\d.e+]+)", str(caught.value))[1])
    law = controllers.make("pd_gravity", ROBOT)
    reference = twin.sample(twin.hold(Q, 0.2), 1e-3)
    peaks = []
    for k in (most, 4 * most):
        world = Environment(pushes("0:0.05 0,0,-2"), [surface(text("plane", f"stiffness={k}", -1e-4))], TOOL)
        plant = twin.AnalyticPlant(ROBOT)
        log = twin.run_closed_loop(plant, law, reference, environment=world)
        peaks.append(np.max(np.abs(log.qd)))
    assert peaks[1] > 3 * peaks[0]


def test_twist_of_the_tool_is_that_of_its_jacobian():
    world = Environment((), [surface(text("plane", "stiffness=1e3 damping=50 friction=0.3 tip=0.03"))], TOOL)
    qd = np.array([0.5, -0.3, 0.4, 1.0, -2.0, 3.0])
    F, T = world.at(ROBOT, 0.0, Q, qd)
    np.testing.assert_allclose(F, world.wrench(ROBOT, 0.0, Q, qd), rtol=0, atol=1e-14)
    n = np.array([0.1, -0.2, 1.0]) / np.linalg.norm([0.1, -0.2, 1.0])
    v, omega = (jacobian(ROBOT, Q, TOOL) @ qd).reshape(2, 3)
    expected = contact_by_hand(T[:3, 3], v, omega, n, n @ P, 1e3, 50, 0.3, 0.01, 0.03)
    np.testing.assert_allclose(F, expected, rtol=0, atol=1e-11)


def test_environment_refuses_numbers_that_are_not_finite():
    row = surface(text("plane"))
    row[1] = np.nan
    with pytest.raises(ValueError, match="expected finite numbers of surfaces"):
        Environment((), [row])
    with pytest.raises(ValueError, match="T_flange_tool"):
        Environment(T_flange_tool=np.full((4, 4), np.nan))
