"""Rollouts against the closed loop: to the bit around the model, to round-off around the engine."""

from dataclasses import replace

import numpy as np
import pytest

import controllers
import twin
from tests.support.forks import NUMBA, Fork
from tests.support.short_runs import PERIOD, SOFT, filtered, nothing, path, same, still
from twin.data.logs.closed_loop import run_closed_loop
from twin.physics.control.control_law import ControlLaw
from twin.physics.control.plant import AnalyticPlant
from twin.physics.control.rollout import run_rollouts
from twin.physics.engine.simulation import Simulation
from twin.physics.robot.robot import Payload
from twin.physics.trajectories.sampling import sample, sample_semi_implicit

pytestmark = pytest.mark.slow("compiles laws and runs them")

LOAD = Payload(3.0, [0.02, 0.01, 0.08], np.diag([0.02, 0.02, 0.01]))
LIGHT = Payload(0.2, [0.01, 0.01, 0.05])


def in_the_workspace(state, reference, parameters, memory, model):
    """Everything else that a model offers: the force of a spring between tool and zero pose, and more."""
    n = len(state.q)
    T, J, J_rate, M = np.empty((4, 4)), np.empty((6, n)), np.empty((6, n)), np.empty((n, n))
    h, g = np.empty(n), np.empty(n)
    flange = np.eye(4)
    model.tool_pose(state.q, flange, T)
    model.jacobian(state.q, flange, J)
    model.jacobian_rate(state.q, state.qd, flange, J_rate)
    model.arm_inertia(state.q, model.inertias, M)
    model.bias(state.q, state.qd, model.inertias, model.gravity, h)
    model.gravity_torque(state.q, model.inertias, model.gravity, g)
    tau = 0.5 * h + 0.5 * g
    for i in range(n):
        for k in range(3):
            tau[i] += J[k, i] * (0.7 - T[k, 3]) * 20.0
        for j in range(n):
            tau[i] += M[i, j] * (reference.qdd[j] - 9.0 * state.qd[j]) - J_rate[2, j] * J[2, i]
    return tau


def vandal(state, reference, parameters, memory, model):
    tau = 1.0 * reference.q
    state.q[:] = 7.0
    reference.q[:] = 7.0
    return tau


@pytest.mark.parametrize(
    ("arm", "name"),
    [*(("irb1400", name) for name in controllers.NAMES), ("irb140", "pid")],
)
def test_a_rollout_is_the_closed_loop_around_the_model_to_the_bit(arm, name):
    """With a start off the reference, a model that does not know the load, weak drives, and held torques."""
    arm = twin.load(arm)
    plant = replace(arm.with_payload(LOAD), tau_max=0.2 * arm.tau_max)
    controller = controllers.make(name, arm, bandwidth=30.0)
    reference, start = sample(path(arm), PERIOD), (arm.poses["zero"] + 0.05, np.full(6, -0.1))
    settings = {"start": start, "steps_per_period": 4}
    rollout = run_rollouts(plant, controller, reference, time_step=PERIOD / 4, **settings)
    log = run_closed_loop(AnalyticPlant(plant, PERIOD / 4), controller, reference, **settings)
    assert same(rollout, log)
    assert rollout.saturated.any()
    assert not rollout.saturated.all()
    assert rollout.failures == ()


def test_a_rollout_is_the_closed_loop_around_the_engine_to_round_off(arm):
    """And of a perfect model, it tracks to round-off."""
    reference, controller = sample(path(arm, 0.3), PERIOD), controllers.make("computed_torque", arm)
    rollout = run_rollouts(arm, controller, reference)
    with Simulation(arm) as simulation:
        log = run_closed_loop(simulation, controller, reference)
    assert np.max(np.abs(rollout.q - log.q)) <= 1e-13
    assert np.max(np.abs(rollout.qd - log.qd)) <= 1e-11
    assert np.ptp(rollout.q, axis=0).min() > 0.05, "every joint moved"
    reference = sample_semi_implicit(path(arm, 0.3), PERIOD)
    assert np.max(np.abs(run_rollouts(arm, controller, reference).q - reference.q)) <= 1e-14


def test_a_batch_is_its_rollouts_one_by_one(irb1400, monkeypatch):
    """Loads and mountings down, gains and models across, starts in depth; for any number of threads."""
    arm = irb1400
    plants = [arm, arm.with_payload(LIGHT), arm.mounted("wall")]
    laws = [
        controllers.make("computed_torque", model, bandwidth=omega)
        for model, omega in ((arm, 10.0), (arm.with_payload(LIGHT), [20.0, 21, 22, 23, 24, 25]))
    ]
    reference = sample(path(arm, 0.1), PERIOD)
    starts = arm.poses["zero"] + np.linspace(0.0, 0.1, 4)[:, None]
    results = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("IRB_TWIN_THREADS", threads)
        grid = np.array(plants)[:, None, None], np.array(laws)[:, None]
        results.append(run_rollouts(*grid, reference, start=(starts, np.zeros(6))))
    assert results[0].q.shape == (3, 2, 4, 101, 6)
    assert results[0].saturated.shape == (3, 2, 4, 6)
    for index in np.ndindex(3, 2, 4):
        plant, law, start = plants[index[0]], laws[index[1]], starts[index[2]]
        log = run_closed_loop(AnalyticPlant(plant), law, reference, start=(start, np.zeros(6)))
        assert same(results[0], log, index)
    for name in ("q", "qd", "tau", "tau_demand", "saturated"):
        first, *others = (getattr(result, name).tobytes() for result in results)
        assert others == [first, first]


def test_the_work_is_shared_in_blocks_and_none_is_left_out(robot, monkeypatch):
    monkeypatch.setattr("twin.physics.control.rollout.STEPS_AT_ONCE", 90)
    monkeypatch.setenv("IRB_TWIN_THREADS", "3")
    starts = robot.poses["zero"] + np.linspace(0.0, 0.1, 23)[:, None]
    reference, law = still(robot, 30), controllers.make("pd_gravity", robot)
    rollouts = run_rollouts(robot, law, reference, start=(starts, np.zeros(6)))
    for k in (0, 3, 4, 7, 8, 22):
        alone = run_rollouts(robot, law, reference, start=(starts[k], np.zeros(6)))
        np.testing.assert_array_equal(rollouts.q[k], alone.q)


@pytest.mark.parametrize(
    ("name", "law", "parameters", "memory"),
    [("irb140", filtered, SOFT, 2), ("irb1400", in_the_workspace, (), 0)],
)
def test_user_law_compiled_and_interpreted_agree(name, law, parameters, memory):
    arm = twin.load(name)
    controller = ControlLaw(arm, law, parameters, memory=memory)
    reference = sample(path(arm), PERIOD)
    rollout = run_rollouts(arm, controller, reference)
    log = run_closed_loop(AnalyticPlant(arm), controller, reference)
    assert log.controller == law.__name__
    assert np.max(np.abs(rollout.q - log.q)) <= 1e-13  # a sine of numpy is not that of the machine code
    assert np.max(np.abs(rollout.tau - log.tau)) <= 1e-11
    assert np.ptp(rollout.q, axis=0).max() > 0.02


def fall(robot, steps, integrator):
    """Return the positions (n,) after a free fall of 0.2 s."""
    start, reference = (robot.poses["zero"] + 0.2, np.full(6, 0.4)), still(robot, 2)
    return run_rollouts(
        robot, ControlLaw(robot, nothing), reference._replace(t=np.array([0.0, 0.2])), start=start,
        time_step=0.2 / steps, steps_per_period=steps, integrator=integrator,
    ).q[-1]  # fmt: skip


@pytest.mark.parametrize(("integrator", "order"), [("semi_implicit_euler", 1), ("rk4", 4)])
def test_the_order_of_an_integrator(robot, integrator, order):
    """Halving the step divides the error by 2 to the order; both go where the other goes."""
    ends = [fall(robot, steps, integrator) for steps in (10, 20, 40)]
    ratio = np.max(np.abs(ends[0] - ends[1])) / np.max(np.abs(ends[1] - ends[2]))
    assert 0.75 * 2**order < ratio < 1.35 * 2**order
    assert np.max(np.abs(ends[2] - fall(robot, 200, "rk4"))) <= (2e-6 if order == 4 else 2e-2)


def test_a_law_cannot_move_the_robot_or_falsify_the_reference(robot):
    rollout = run_rollouts(robot, ControlLaw(robot, vandal), still(robot, 30))
    honest = run_rollouts(robot, ControlLaw(robot, nothing), still(robot, 30))
    np.testing.assert_array_equal(rollout.tau, np.zeros((30, 6)))
    np.testing.assert_array_equal(rollout.q, honest.q)
    assert run_rollouts(robot, ControlLaw(robot, nothing), still(robot, 1)).q.shape == (1, 6)


def test_a_run_leaves_the_controller_as_it_was(robot):
    controller = controllers.make("pid", robot)
    controller.integral[:] = 0.5
    first, second = (run_rollouts(robot, controller, still(robot, 30)) for _ in range(2))
    np.testing.assert_array_equal(first.q, second.q)
    np.testing.assert_array_equal(controller.integral, np.full(6, 0.5))


CODE = """
import sys
import numpy as np
import controllers, twin
from tests.support.short_runs import path
from twin.physics.control import rollout_loop
from twin.physics.control.control_law import machine_code
from twin.physics.control.rollout import run_rollouts
from twin.physics.trajectories.sampling import sample
robot = twin.load("irb1400")
reference = sample(path(robot, 0.02), 1e-3)
laws = [controllers.make(name, robot) for name in ("pid", "dob")]
np.save("{}", [run_rollouts(robot, law, reference).q for law in laws])
kernels = robot.kernels.forward_dynamics, robot.kernels.tool_pose
functions = (rollout_loop.run, *(machine_code(law.law) for law in laws), *kernels)
assert all(function.overloads for function in functions)
sys.exit(3 if any(function.stats.cache_misses for function in functions) else 0)
"""


def test_another_process_compiles_nothing_of_ours_again(irb1400, tmp_path):
    reference = sample(path(irb1400, 0.02), PERIOD)
    here = [run_rollouts(irb1400, controllers.make(name, irb1400), reference).q for name in ("pid", "dob")]
    # Another worker that compiles at this moment may cost what has just been kept its place on the list.
    statuses = (Fork(CODE.format(tmp_path / "q.npy"), NUMBA).wait().returncode for _ in range(3))
    assert any(status == 0 for status in statuses), "it was compiled again and again"
    np.testing.assert_array_equal(np.load(tmp_path / "q.npy"), here)


def test_rollouts_want_compiled_kernels(irb140):
    from twin.physics.robot.evaluation import uncompiled

    with pytest.raises(ValueError, match="expected robots with compiled kernels"):
        run_rollouts(uncompiled(irb140), ControlLaw(uncompiled(irb140), nothing), still(irb140, 30))
