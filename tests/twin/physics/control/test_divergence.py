"""How a closed loop refuses what makes no sense, and how it ends when a run goes wrong."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

import twin
from tests.support.refusals import refused
from tests.support.short_runs import PERIOD, still
from twin.base.errors import ControllerError, DivergenceError, LimitError
from twin.data.logs.closed_loop import run_closed_loop
from twin.physics.control.plant import AnalyticPlant
from twin.physics.control.signals import RUNAWAY_SPEED
from twin.physics.dynamics.equation_of_motion import gravity_torque, mass_matrix
from twin.physics.engine.simulation import Simulation
from twin.physics.trajectories.joint_trajectories import hold
from twin.physics.trajectories.sampling import Samples, sample


@pytest.fixture(scope="module")
def simulation(irb140):
    with Simulation(irb140) as simulation:
        yield simulation


def at_rest(*_):
    return np.zeros(6)


def test_a_wrong_sign_ends_the_run_by_time_and_joint_and_keeps_the_log(simulation, irb140):
    def unstable(state, _):
        return gravity_torque(irb140, state.q) + 1e3 * state.q * np.array([0, 0, 1, 0, 0, 0])

    start = (np.full(6, 0.01), np.zeros(6))
    with pytest.raises(DivergenceError, match=r"joint_\d runs away: \S+ rad/s, .* at t = 0\.\d+ s") as caught:
        run_closed_loop(simulation, unstable, still(irb140, 5000), start=start)
    log = caught.value.log
    assert 10 < len(log.t) < 5000
    assert f"t = {log.t[-1] + PERIOD:.6g} s" in str(caught.value)
    assert np.isfinite(log.q).all()
    assert np.isfinite(log.pose).all()
    assert log.model_residual() is not None


def test_a_fast_wrist_is_stopped_by_speed_and_a_heavy_joint_by_energy(irb140):
    for joint, factor, why in ((5, RUNAWAY_SPEED + 1, "runs away"), (0, 12.0, "kinetic energy of")):
        qd = factor * irb140.qd_max * (np.arange(6) == joint)
        told = rf"joint_{joint + 1} runs away: .*{why}.* at t = 0 s|{why}"
        with pytest.raises(DivergenceError, match=told) as caught:
            run_closed_loop(AnalyticPlant(irb140), at_rest, still(irb140), start=(np.zeros(6), qd))
        assert ("energy" in str(caught.value)) == (joint == 0)
        log = caught.value.log
        assert log.q.shape == (0, 6)
        assert log.pose.shape == (0, 7)
        assert log.violations() == ()
        assert log.model_residual() is None


def test_the_energy_that_is_too_much_is_25_times_that_of_the_joints_at_their_limits(irb140):
    """To a millionth, in a pose where the joints share it."""
    q, direction = irb140.poses["test_1"], np.array([1.0, -1.0, 1.0, 0.1, 0.1, 0.1])
    at_the_limits = 0.5 * np.diag(mass_matrix(irb140, np.zeros(6))) @ irb140.qd_max**2
    speed = np.sqrt(2 * 25.0 * at_the_limits / (direction @ mass_matrix(irb140, q) @ direction))
    for factor in (1.0 - 1e-6, 1.0 + 1e-6):
        with pytest.raises(DivergenceError, match="kinetic energy") if factor > 1 else nullcontext():
            start = q, factor * speed * direction
            run_closed_loop(AnalyticPlant(irb140), at_rest, still(irb140, 1), start=start)
    start = np.zeros(6), 3.0 * irb140.qd_max  # a study may do this on purpose
    assert len(run_closed_loop(AnalyticPlant(irb140), at_rest, still(irb140, 3), start=start).t) == 3


def test_a_plant_that_is_not_a_number(irb140):
    class Broken(AnalyticPlant):
        def state(self, out=None):
            out = super().state(out)
            if out[1].any():
                out[1, 3] = np.nan
            return out

    told = r"joint_4 is at \S+ rad with nan rad/s at t = 0\.001 s"
    with pytest.raises(DivergenceError, match=told) as caught:
        run_closed_loop(Broken(irb140), at_rest, still(irb140))
    assert len(caught.value.log.t) == 1


@pytest.mark.parametrize(("value", "samples"), [(np.nan, 6), (np.inf, 6), (np.nan, 1)])
def test_a_torque_that_is_not_finite(irb140, value, samples):
    robot = replace(irb140, tau_max=np.full(6, np.inf))

    def controller(state, _):
        tau = np.zeros(6)
        tau[1] = value if state.t > (samples - 1.5) * PERIOD else 0.0
        return tau

    told = rf"'controller' demands {value} N m of joint_2 at t = {(samples - 1) * PERIOD:g} s"
    with pytest.raises(DivergenceError, match=told) as caught:
        run_closed_loop(AnalyticPlant(robot), controller, still(irb140))
    log = caught.value.log
    assert len(log.t) == samples
    np.testing.assert_array_equal(log.tau_demand[-1], [0, value, 0, 0, 0, 0])
    np.testing.assert_array_equal(log.tau[-1], [0, value, 0, 0, 0, 0])
    assert np.isfinite(log.q).all()
    assert all(one.quantity == "speed" for one in log.violations())
    assert samples == 1 or log.model_residual() < 1e-12, "the last torque moved nothing"


def test_what_is_no_torque(irb140):
    for wrong, message in (
        (np.zeros(5), r"tau of shape \(5,\) at t = 0 s, expected 6 real numbers"),
        (np.zeros((1, 6)), r"tau of shape \(1, 6\) at"),
        (0.0, r"tau of shape \(\) at"),
        (None, "None at t = 0 s, expected 6 real numbers: does it end with `return tau`"),
        ("abc", "'abc' at"),
        (np.ones(6) * 1j, "an array of complex128 at"),
        (
            np.ma.masked_array(np.zeros(6), mask=[0, 1, 0, 0, 0, 0]),
            "a masked array.* expected 6 real numbers",
        ),
    ):
        with pytest.raises(ControllerError, match=f"'<lambda>' returned {message}"):
            run_closed_loop(AnalyticPlant(irb140), lambda *_, tau=wrong: tau, still(irb140))
    log = run_closed_loop(AnalyticPlant(irb140), lambda *_: [0, 1, 0, 0, 0, 0], still(irb140))
    np.testing.assert_array_equal(log.tau_demand[0], [0, 1, 0, 0, 0, 0])


def test_what_is_no_controller_and_no_reference(irb140):
    plant = AnalyticPlant(irb140)
    with pytest.raises(ValueError, match=r"expected a controller, as controllers\.make.*, got 'pd'"):
        run_closed_loop(plant, "pd", still(irb140))
    motion = twin.quintic([0] * 6, [0.1] * 6, 0.5)
    with pytest.raises(ValueError, match=r"expected a reference of samples, as twin\.sample"):
        run_closed_loop(plant, lambda *_: np.zeros(6), motion)


def test_references_and_periods_of_the_wrong_kind(irb140):
    good = still(irb140)
    bent = good.t.copy()
    bent[7] += 3e-4
    holey = good.q.copy()
    holey[3, 2] = np.nan

    def run(reference=good, time_step=1e-3, steps=1):
        plant = AnalyticPlant(irb140, time_step)
        return lambda: run_closed_loop(plant, at_rest, reference, steps_per_period=steps)

    run(steps=np.int64(1))()
    refused(
        (run(good._replace(q=good.q[:, :5])), r"reference\.q of shape \(20, 6\), got \(20, 5\)"),
        (run(good._replace(qdd=good.qdd[1:])), r"reference\.qdd of shape \(20, 6\), got \(19, 6\)"),
        (run(good._replace(q=holey)), r"reference\.q to be finite"),
        (run(good._replace(t=bent)), r"reference\.t to advance by 0\.001 s everywhere"),
        (run(Samples(*(part[:0] for part in good))), "at least one sample"),
        *(
            (run(steps=wrong), "expected steps_per_period to be an integer")
            for wrong in (0, 2.0, np.nan, "2", None)
        ),
        (run(time_step=3e-4, steps=3), "period of 0.001 s, which is not 3 steps of 0.0003 s"),
        (run(time_step=2e-3), "period of 0.001 s, which is not 1 steps of 0.002 s"),
    )


def test_degrees_for_radians_are_named(irb140):
    degrees = hold(np.array([0.0, 30.0, 0.0, 0.0, 90.0, 0.0]), 0.01)
    told = r"joint_2 would be at .* \(30 rad\) .*sample 0.* are these degrees\?"
    with pytest.raises(LimitError, match=told):
        run_closed_loop(AnalyticPlant(irb140), at_rest, sample(degrees, 1e-3))
