"""How rollouts end that go wrong, and what they refuse."""

from dataclasses import replace

import numpy as np
import pytest

import controllers
from tests.support.refusals import refused
from tests.support.short_runs import nothing, still
from twin.base.errors import DivergenceError, LimitError
from twin.data.logs.closed_loop import run_closed_loop
from twin.physics.control.control_law import ControlLaw
from twin.physics.control.plant import AnalyticPlant
from twin.physics.control.rollout import run_rollouts


def too_short(state, reference, parameters, memory, model):
    return np.zeros(3)


def wordless(state, reference, parameters, memory, model):
    return "none"


def impossible(state, reference, parameters, memory, model):
    return 1.0 / (state.q - state.q)


def divergence(plant, controller, reference, **options):
    """The `DivergenceError` of a rollout, and that of the closed loop around the model."""
    with pytest.raises(DivergenceError) as rollout:
        run_rollouts(plant, controller, reference, **options)
    with pytest.raises(DivergenceError) as run:
        run_closed_loop(AnalyticPlant(plant), controller, reference, **options)
    return rollout.value, run.value


def test_diverged_rollout_has_the_message_of_the_closed_loop(robot):
    unstable = ControlLaw(
        robot, controllers.law("pd").function, (-np.full(6, 500.0), np.zeros(6)), name="wrong"
    )
    start = (robot.poses["zero"] + 0.01, np.zeros(6))
    rollout, run = divergence(robot, unstable, still(robot, 2000), start=start)
    samples = len(run.log.t)
    assert str(rollout) == f"{run} (sample {samples})"
    assert rollout.log.failures[0][:2] == ((), samples)
    np.testing.assert_array_equal(rollout.log.q[:samples], run.log.q)
    assert np.isnan(rollout.log.q[samples:]).all()
    assert np.isnan(rollout.log.tau[samples:]).all()


def test_excessive_energy_has_the_message_of_the_closed_loop(robot):
    """Six times the speed limits are no joint's end, but the heavy joints'; four times are nobody's."""
    heavy, law = robot.qd_max * [1, 1, 1, 0, 0, 0], controllers.make("pd", robot)
    rollout, run = divergence(robot, law, still(robot, 2), start=(np.zeros(6), 6 * heavy))
    assert "kinetic energy" in str(run)
    assert str(rollout) == f"{run} (sample 0)"
    assert run_rollouts(robot, law, still(robot, 2), start=(np.zeros(6), 4 * heavy))


def test_folding_parallelogram_fails_only_its_rollout(irb1400):
    """Arms that fall: some fold sooner, some later, and those that are held not at all."""
    reference = still(irb1400, 900)
    falling = ControlLaw(irb1400, nothing)
    rollout, run = divergence(irb1400, falling, reference)
    samples = len(run.log.t)
    assert str(rollout) == f"{run} (sample {samples - 1})"
    assert "its range is" in str(rollout)
    np.testing.assert_array_equal(rollout.log.tau_demand[:samples], run.log.tau_demand)

    laws = [controllers.make("pd_gravity", irb1400, bandwidth=omega) for omega in (0.01, 20.0)]
    plants = np.array([irb1400, irb1400.with_gravity((0, 0, 9.81))])[:, None]
    with pytest.raises(DivergenceError, match=r"in rollout \(1, 0\) \(1 of 4 rollouts ended early\)"):
        run_rollouts(plants, laws, reference)
    kept = run_rollouts(plants, laws, reference, every=10, keep_failures=True)
    (failure,) = kept.failures
    assert failure.rollout == (1, 0)
    assert f"(sample {failure.samples - 1})" in failure.message
    there = ~np.isnan(kept.q).any(axis=(-2, -1))
    np.testing.assert_array_equal(there, [[True, True], [False, True]])
    first = -(-failure.samples // 10)
    assert np.isfinite(kept.q[1, 0, :first]).all()
    assert np.isnan(kept.q[1, 0, first:]).all()
    start = np.array([np.zeros(6), [0, 0, 1.4, 0, 0, 0]]), np.zeros(6)
    with pytest.raises(LimitError, match="at the start in rollout 1"):
        run_rollouts(irb1400, falling, reference, start=start)


def test_non_finite_torque_has_the_message_of_the_closed_loop(robot):
    plant = replace(robot, tau_max=np.full(6, np.inf))
    with np.errstate(divide="ignore"):
        rollout, run = divergence(plant, ControlLaw(robot, impossible), still(robot, 30))
    assert str(rollout).replace("law", "controller") == f"{run} (sample 0)"
    np.testing.assert_array_equal(rollout.log.tau_demand[0], run.log.tau_demand[0])
    np.testing.assert_array_equal(rollout.log.q[0], run.log.q[0])
    assert np.isnan(rollout.log.q[1:]).all()


def test_misuse_is_refused(robot, irb1400):
    law, pd = ControlLaw(robot, nothing), controllers.make("pd", robot)
    one, remembers = ControlLaw(robot, nothing, [1.0]), ControlLaw(robot, nothing, memory=1)

    def run(plant=robot, controller=law, **options):
        return lambda: run_rollouts(plant, controller, still(robot, 30), **options)

    refused(
        (run(controller=lambda *_: None), "a ControlLaw or a regular array of them, got function"),
        (run([]), "plant to be a Robot or a regular array of them, got none"),
        (run(integrator="heun"), "unknown integrator 'heun': expected one of semi_implicit_euler, rk4"),
        (run(every=0), "every to be an integer of at least 1, got 0"),
        (run(time_step=np.nan), "time step above 0 s, got nan"),
        (run(steps_per_period=2), "which is not 2 steps"),
        (run(start=(np.zeros(5), np.zeros(6))), r"start q of shape \(..., 6\), got \(5,\)"),
        (run(start=(np.zeros(6), np.full(6, np.nan))), "start qd to be finite"),
        (run(start=(np.zeros((0, 6)), np.zeros(6))), "at least one rollout"),
        (run([robot, irb1400]), "differ only in payload, gravity and limits, got 'irb140' and 'irb"),
        (run(controller=[law, ControlLaw(irb1400, nothing)]), "models that differ only in payload"),
        (run(controller=[pd, law]), "controllers with the same law, got 'pd' and 'nothing'"),
        (run(controller=[law, one]), r"parameters of the same shape, got \(0, 6\) and \(1, 6\)"),
        (run(controller=[law, remembers]), "memory of the same shape"),
        (run([robot] * 2, [law] * 3), r"shapes that can be broadcast, got \(2,\), \(3,\)"),
        (lambda: ControlLaw(robot, nothing, (np.zeros(5),)), r"parameters of 'nothing' of shape \(m, 6\)"),
        (lambda: ControlLaw(robot, nothing, (1.0, np.nan)), "parameters of 'nothing' without NaN"),
        (lambda: ControlLaw(robot, nothing, (["a"] * 6,)), r"shape \(m, 6\)"),
        (lambda: ControlLaw(robot, nothing, 3.0), r"shape \(m, 6\)"),
    )


def test_a_law_that_is_wrong_is_named(robot):
    told = r"law 'too_short' returned tau of a wrong shape at t = 0 s \(sample 0\), expected \(6,\)"
    with pytest.raises(ValueError, match=told):
        run_rollouts(robot, ControlLaw(robot, too_short), still(robot, 30))
    for law, reason in ((wordless, "No conversion"), (lambda state: state.q, "5 argument types given")):
        with pytest.raises(ValueError, match=f"numba cannot compile the law '{law.__name__}': .*{reason}"):
            run_rollouts(robot, ControlLaw(robot, law), still(robot, 30))
