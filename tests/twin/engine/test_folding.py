"""A closed loop that comes open or folds, in the engine and in the model: what is said, and what is kept."""

from dataclasses import replace

import numpy as np
import pytest

import twin
from tests.support.engine_states import WEIGHTLESS, ZERO, open_loop
from twin.control.closed_loop import run_closed_loop
from twin.control.plant import AnalyticPlant
from twin.dynamics.equation_of_motion import gravity_torque
from twin.engine import body
from twin.engine.simulation import Simulation
from twin.errors import DivergenceError, LimitError, LoopError
from twin.multibody.tree import frozen
from twin.trajectories.joint_trajectories import hold
from twin.trajectories.sampling import sample

APART = (
    r"loop parallelogram came open: the gap between link_rod and link_3 is \S+ m, expected "
    r"at most \S+ m; is the motion too fast for the time step\?"
)
FOLD = (
    r"joint_elbow \(q3 - q2\) would be at \S+ deg \(\S+ rad\), its range is -75 deg \(-1\.309 rad\) to "
    r"75 deg \(1\.309 rad\): link_rod would be \S+ m from folding parallelogram flat"
)


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
