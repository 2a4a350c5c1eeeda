"""The closed loop in the engine: one test a trap that its cure keeps shut, its motors, its gap.

It ends with what becomes of a loop that folds or comes open.  `test_oracle.py` compares the motion itself
with the model.
"""

from dataclasses import replace

import numpy as np
import pytest

import controllers
import twin
from scenarios.judging.motion_range import free_motion, random_positions
from scenarios.parallelogram import Parallelogram
from scenarios.setup import Setup
from tests.support.engine_states import WEIGHTLESS, ZERO, open_loop
from tests.support.peers import one_step
from twin.base.errors import DivergenceError, LimitError, LoopError
from twin.data.logs.closed_loop import run_closed_loop
from twin.physics.control.plant import AnalyticPlant
from twin.physics.dynamics.equation_of_motion import forward_dynamics, gravity_torque
from twin.physics.engine import body
from twin.physics.engine.body import link_pose
from twin.physics.engine.simulation import Simulation
from twin.physics.multibody.tree import frozen
from twin.physics.trajectories.joint_trajectories import hold
from twin.physics.trajectories.sampling import Samples, sample

pytestmark = pytest.mark.slow("simulates in the engine")

STATES = 30


@pytest.fixture(scope="module")
def arm():
    return twin.load("irb1400")


@pytest.fixture
def simulation(arm):
    with Simulation(arm) as simulation:
        yield simulation


@pytest.fixture
def floating(arm):
    with Simulation(arm.with_gravity(WEIGHTLESS)) as simulation:
        yield simulation


def errors(simulation, q, qd, tau):
    """Relative error of the acceleration of one step, of each state."""
    found = np.array([one_step(simulation, *state) for state in zip(q, qd, tau, strict=True)])
    expected = forward_dynamics(simulation.robot, q, qd, tau)
    return np.max(np.abs(found - expected), axis=1) / np.max(np.abs(expected), axis=1)


def random_states(arm, seed=1):
    rng = np.random.default_rng(seed)
    qd, tau = rng.uniform(-1, 1, (2, STATES, arm.n))
    return random_positions(arm, rng, STATES), qd * arm.qd_max, tau * arm.tau_max


def link_state(simulation, link):
    """Centre of mass, rotation of the inertial frame, velocity, angular velocity: the engine, base frame."""
    index = simulation._joints[simulation.robot.tree.links.index(link)]
    state = simulation._client.getLinkState(
        simulation._body, index, computeLinkVelocity=1, computeForwardKinematics=1
    )
    T, R = link_pose(*state[:2]), body.world_axes(simulation.robot).T
    return R @ T[:3, 3], R @ T[:3, :3], R @ state[6], R @ state[7]


# ---- the traps -----------------------------------------------------------------------------------


def test_the_loop_bears_any_force(arm, simulation):
    """By default a constraint gives way at 500 N; motor 3 alone puts thousands on the rod."""
    for tau_3 in (-arm.tau_max[2], arm.tau_max[2], 1e5):
        tau = np.array([[0, 0, tau_3, 0, 0, 0]])
        assert errors(simulation, ZERO[None], ZERO[None], tau)[0] < 1e-12


def test_near_the_fold_the_solver_is_given_the_iterations_that_it_needs(arm, simulation):
    """The 50 of PyBullet's default leave 1e-3 there, and 200 leave 1e-9."""
    q, qd, tau = random_states(arm)
    q[:, 1] = np.clip(q[:, 1], np.deg2rad(-60), 0)
    q[:, 2] = q[:, 1] + np.deg2rad(74)
    assert np.max(errors(simulation, q, qd, tau)) < 1e-12


def test_no_axis_of_the_world_is_normal_to_the_plane_of_the_loop():
    """A steady motion passes q1 = 0, where speeds would err by 3e-11 rad/s with axis 1 along z."""
    arm = twin.load("irb2400")
    q = [-0.0005, 0.081, -0.51, 0.891, -1.727, -2.887]
    qd = [-1.833, 2.0, 0.356, -0.124, 0.736, 1.087]
    t = 1e-3 * np.arange(84)
    motion = Samples(t, q + np.outer(t - 0.075, qd), np.tile(qd, (84, 1)), np.zeros((84, 6)))
    with Simulation(arm) as simulation:
        log = twin.run_closed_loop(simulation, controllers.make("computed_torque", arm), motion)
    assert log.q[0, 0] > 0 > log.q[-1, 0]
    assert log.model_residual() < 1e-12
    assert np.max(log.loop_gap) < 3e-15


def test_the_links_are_held_at_the_point_that_they_share(arm, simulation):
    """A constraint's points are in the inertial frames, moved and turned against the links' own."""
    info = simulation._client.getConstraintInfo(simulation._client.getConstraintUniqueId(0))
    assert [simulation._joints[joint] for joint in arm.loops[0].joints] == [info[1], info[3]]
    for q in random_states(arm)[0][:10]:
        simulation.reset(q)
        upper, lower = q[2], q[1]  # the eye behind axis 3, in the plane of the arm
        x = 0.150 + 0.600 * np.sin(lower) - 0.170 * np.cos(upper)
        z = 0.475 + 0.600 * np.cos(lower) + 0.170 * np.sin(upper)
        for joint, point in zip(arm.loops[0].joints, info[6:8], strict=True):
            com, R, _, _ = link_state(simulation, arm.tree.links[joint])
            eye = [np.cos(q[0]) * x, np.sin(q[0]) * x, z]
            np.testing.assert_allclose(com + R @ point, eye, rtol=0, atol=1e-14)


def test_a_two_hundredth_of_a_gap_is_taken_back_in_a_step(floating):
    """A fifth, the default, turns every rounding of the gap into speed; without any the gap would stay."""
    floating.reset(ZERO)
    open_loop(floating, 1e-9)
    gaps = [0.600e-9]
    for _ in range(200):
        floating.step(ZERO)
        gaps.append(floating.loop_gap)
    np.testing.assert_allclose(gaps, 0.600e-9 * 0.995 ** np.arange(201), rtol=1e-5)


# ---- motors and passive joints -------------------------------------------------------------------


def test_no_motor_holds_or_turns_a_passive_joint(floating):
    """The arm coasts, with the speeds that the model has."""
    coasting = AnalyticPlant(floating.robot)
    for plant in (floating, coasting):
        plant.reset(ZERO, np.array([0, 1.0, -1.0, 0, 0, 0]))
        for _ in range(300):
            plant.step(ZERO)
    np.testing.assert_allclose(floating.state(), coasting.state(), rtol=0, atol=1e-12)
    assert floating.state()[0][1] > 0.2


# ---- the gap -------------------------------------------------------------------------------------


def test_the_gap_is_the_one_between_the_links_of_the_engine(floating, monkeypatch):
    monkeypatch.setattr(body, "LARGEST_GAP", 1.0)
    floating.reset(np.array([0.3, 0.2, -0.4, 0, 0, 0]))
    open_loop(floating, 0.1)
    floating.step(ZERO)
    info = floating._client.getConstraintInfo(floating._client.getConstraintUniqueId(0))
    ends = []
    for link, point in (("link_rod", info[6]), ("link_3", info[7])):
        com, R, _, _ = link_state(floating, link)
        ends.append(com + R @ point)
    gap = np.linalg.norm(ends[1] - ends[0])
    assert gap > 0.1
    np.testing.assert_allclose(floating.loop_gap, gap, rtol=1e-12)
    floating.reset(ZERO)
    assert floating.loop_gap == 0.0


def test_three_seconds_of_fast_motion_keep_the_loop_closed(arm):
    """And computed torque with the exact model on its reference, with the rounding of single steps alone."""
    log = Parallelogram(duration=3.0, speed_fraction=0.9, start="hanging").run().log
    assert np.max(np.abs(log.qd), axis=0)[[1, 2]] / arm.qd_max[1:3] == pytest.approx(0.88, abs=0.05)
    assert 0 < np.max(log.loop_gap) < 1e-13
    assert np.max(np.abs(log.q - log.q_ref)) < 1e-13


@pytest.mark.parametrize("gui", [False, True])
def test_the_fall_of_engine_and_model(arm, gui, monkeypatch):
    """With a window, if the setup says so."""
    windows, made = [], Simulation.__init__
    monkeypatch.setattr(
        Simulation, "__init__",
        lambda self, *given, gui, **more: (windows.append(gui), made(self, *given, **more))[1],
    )  # fmt: skip
    fall = free_motion(arm, arm.poses["hanging"], ZERO, 0.4, Setup(gui=gui))
    assert windows == [gui]
    assert len(fall.engine) == len(fall.model) == 401
    assert np.max(np.abs(fall.engine[-1, 0] - arm.poses["hanging"])) > 0.5
    np.testing.assert_allclose(fall.engine, fall.model, rtol=0, atol=1e-11)
    assert np.max(fall.gap) < 1e-14


# ---- a loop that comes open or folds: what is said, and what is kept --------------------------------

APART = (
    r"loop parallelogram came open: the gap between link_rod and link_3 is \S+ m, expected "
    r"at most \S+ m; is the motion too fast for the time step\?"
)
FOLD = (
    r"joint_elbow \(q3 - q2\) would be at \S+ deg \(\S+ rad\), its range is -75 deg \(-1\.309 rad\) to "
    r"75 deg \(1\.309 rad\): link_rod would be \S+ m from folding parallelogram flat"
)


@pytest.fixture(params=["engine", "model"])
def plant(request, arm):
    return AnalyticPlant(arm) if request.param == "model" else request.getfixturevalue("simulation")


def test_a_loop_that_comes_open_is_an_error(simulation):
    """More than its constraint bears tears it, and the links and their distance are named."""
    with pytest.raises(LoopError, match=APART) as caught:
        simulation.step(np.array([0, 1e14, 1e14, 0, 0, 0]))
    assert float(str(caught.value).split(" is ")[1].split()[0]) > 0.1


def test_a_small_gap_is_an_error_too(floating):
    open_loop(floating, 1.5e-9)  # 0.6 m away that is 0.9e-9 m
    floating.step(ZERO)
    for angle, gap in ((1.8e-9, r"1\.0[67]e-09"), (np.nan, "nan")):
        open_loop(floating, angle)
        with pytest.raises(LoopError, match=rf"link_rod and link_3 is {gap} m"):
            floating.step(ZERO)


def test_a_folded_start_is_refused(plant):
    for side in (-1, 1):
        with pytest.raises(LimitError, match=FOLD):
            plant.reset([0, -0.7 * side, 0.7 * side, 0, 0, 0])


def test_a_step_over_the_fold_is_an_error(plant):
    """The step is made, and then told of."""
    plant.reset([0, -0.64, 0.64, 0, 0, 0], [0, -2.0, 2.0, 0, 0, 0])
    for _ in range(7):
        plant.step(ZERO)
    with pytest.raises(LimitError, match=FOLD):
        plant.step(ZERO)
    q, _ = plant.state()
    assert np.deg2rad(75) < q[2] - q[1] < np.deg2rad(75.3)


def test_at_the_end_of_the_range_the_driven_joints_decide(arm):
    """As in the model, so that both fold in the same step; the rod may be beyond by what the gap allows."""
    edge = np.deg2rad(75)
    for elbow, rod, folds in (
        (edge, -edge, False),
        (edge, -edge - 1.5e-9, False),
        (-edge, edge + 1.5e-9, False),
        (edge + 2e-9, -edge - 0.5e-9, True),
        (-edge - 2e-9, edge + 0.5e-9, True),
        (edge + 0.1, -edge - 0.1, True),
    ):
        q_tree = arm.tree_positions(np.array([0, -0.3, elbow - 0.3, 0, 0, 0]))
        q_tree[arm.tree.names.index("joint_rod")] = rod
        if folds:
            with pytest.raises(LimitError, match=FOLD):
                body.checked_gap(arm, q_tree)
        else:
            assert body.checked_gap(arm, q_tree) < 1e-9


def test_each_end_of_each_range_is_watched(arm):
    """The elbow's, where the rod's would allow more."""
    wide = replace(arm, passive_min=frozen([-1.0, -9.0]), passive_max=frozen([1.0, 9.0]))
    for side in (-1, 1):
        q_tree = arm.tree_positions(np.array([0, 0, side * (1 + 2e-9), 0, 0, 0]))
        q_tree[arm.tree.names.index("joint_elbow")] = side * (1 - 0.5e-9)
        with pytest.raises(LimitError, match=r"joint_elbow \(q3 - q2\) would be at"):
            body.checked_gap(wide, q_tree)


def test_a_run_that_folds_ends_with_its_log(plant, arm):
    """A controller that loses the upper arm: the message tells link, distance and time."""

    def loses(state, _):
        return gravity_torque(arm, state.q) * [1, 1, 0, 1, 1, 1]

    with pytest.raises(DivergenceError, match=FOLD + r", in the step after t = 0\.\d+ s") as caught:
        run_closed_loop(plant, loses, sample(hold(ZERO, 2.0), 1e-3))
    log = caught.value.log
    assert 100 < len(log.t) < 2000
    assert str(caught.value).endswith(f"in the step after t = {log.t[-1]:.6g} s")
    elbow = log.q[:, 2] - log.q[:, 1]
    assert np.deg2rad(74) < elbow[-1] < np.deg2rad(75)
    assert len(log.loop_gap) == len(log.t)


def test_a_run_whose_loop_comes_open_ends_with_its_log(simulation, monkeypatch):
    monkeypatch.setattr(body, "LARGEST_GAP", 1e-18)
    q = np.array([0.3, 0.2, -0.4, 0.1, 0.2, 0.3])
    with pytest.raises(DivergenceError, match=APART + r", in the step after t = \S+ s") as caught:
        run_closed_loop(simulation, lambda *_: ZERO, sample(hold(q, 0.1), 1e-3))
    assert len(caught.value.log.t) >= 1
