"""One guidance instruction: speeds, programs, ramps, waiting, stops, and the return motion."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import betainc

from tests.support.guided_runs import DT, EXACT, FAST, HOME, LOST, run_of, to_the_end
from twin.egm.guidance.guidance import Fault, GuidanceStop
from twin.egm.guidance.run import Phase, ReturnMotion, Run
from twin.egm.guidance.settings import GuidanceSettings
from twin.egm.wire.messages import SensorMessage

CORRECTION = SensorMessage(path_correction=np.zeros(3))


class Programmed:
    """Guidance whose program moves joint 1 and whose deviation moves joint 2."""

    def __init__(self, program, deviation, periods=10**9):
        self.program, self.deviation, self.left, self.limited = program, deviation, periods, []

    def begin(self, q, period):
        self.period = period

    def take(self, message, q):
        pass

    def speed(self, q):
        if self.left < 0:
            raise GuidanceStop(Fault(50026, "Close to singularity", "there"))
        self.left -= 1
        return self.program + self.deviation

    def programmed(self):
        return self.program

    def ended(self):
        return self.left == 0

    def converged(self, q):
        return True

    def follow(self, qd):
        self.limited.append(qd)


def taken(robot, message=CORRECTION, **arguments):
    """Return a run of joint guidance that has taken a message."""
    run = run_of(robot, **arguments)
    run.take(message)
    return run


def programmed(robot, deviation, periods=10**9, speed=0.5, **arguments):
    """Return a run that has taken a message, of a robot without torque limits, and its guidance."""
    robot = replace(robot, tau_max=np.full(6, np.inf))
    program = np.array([speed, 0, 0, 0, 0, 0])
    guidance = Programmed(program, np.array([0, deviation, 0, 0, 0, 0]), periods)
    run = Run(robot, GuidanceSettings(mode="path", **arguments), guidance, HOME, DT)
    run.take(CORRECTION)
    return run, guidance


def test_excessive_speeds_are_scaled_by_one_factor(irb140):
    """One factor slows all joints down, and the utilization is reported."""
    asked = SensorMessage(qd=irb140.qd_max * np.array([0.5, -1.0, -2.0, 0.0, 1.0, 1.6]))
    run = taken(irb140, asked, level=0, pos_corr_gain=0.0, **FAST)
    run.samples(20)
    np.testing.assert_allclose(run.qd / irb140.qd_max, [0.25, -0.5, -1.0, 0.0, 0.5, 0.8], rtol=1e-12)
    assert run.utilization == pytest.approx(200.0, rel=1e-12)


def test_limits_and_ramps_act_on_the_deviation_from_the_program(irb140):
    limits = {"max_speed_deviation": np.rad2deg(0.1), "ramp_in_time": 0.1, "max_pos_deviation": 1.0}
    run, guidance = programmed(irb140, 0.3, **limits)
    qd = run.samples(202).qd[1:]
    assert qd[:, 0].tolist() == [0.5] * 201
    expected = 0.1 * np.minimum(np.arange(1, 202) / 100, 1.0)
    np.testing.assert_allclose(qd[:, 1], expected, rtol=1e-12)
    np.testing.assert_allclose(np.array(guidance.limited)[:, 1], 0.1, rtol=1e-12)  # without the ramp


def test_too_fast_program_is_scaled_with_its_deviation(irb140):
    top = irb140.qd_max[0]
    run, guidance = programmed(irb140, 0.3, speed=2.0 * top, max_speed_deviation=1e3, ramp_in_time=0.1)
    qd = run.samples(202).qd[1:]
    np.testing.assert_allclose(qd[:, 0], top, rtol=1e-12)
    np.testing.assert_allclose(qd[100:, 1], 0.15, rtol=1e-12)
    guidance.deviation = np.array([-1.5 * top, 0, 0, 0, 0, 0])  # the ramp reduces the deviation
    run = Run(irb140, run.settings, guidance, HOME, DT)
    run.take(CORRECTION)
    assert run.samples(90).qd.max() <= top * (1.0 + 1e-12)


def test_run_stops_at_the_end_of_its_program(irb140):
    run, _ = programmed(irb140, 0.0, periods=50, ramp_out_time=0.02)
    for _ in range(10):
        run.measured(run.q, 10.0)  # convergence does not end a path
        run.samples(5)
    assert run.phase is Phase.GUIDED
    qd = run.samples(30).qd[:, 0]
    np.testing.assert_allclose(qd[:22], 0.5 * np.append(1.0 - np.arange(21) / 20, 0.0), atol=1e-15)
    assert (run.phase, run.fault) == (Phase.FINISHED, None)


INFINITE = "guidance expected finite joint speeds, the references require infinite ones"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"left": -1}, "there"),
        ({"deviation": np.full(6, np.inf)}, INFINITE),
        ({"deviation": np.full(6, np.nan)}, INFINITE),
    ],
)
def test_stop_of_the_guidance_or_non_finite_speeds_are_a_fault(irb140, changes, sentence):
    run, guidance = programmed(irb140, 0.0)
    run.samples(20)
    vars(guidance).update(changes)
    assert np.isfinite(run.samples(600).q).all()
    assert (run.phase, run.fault.sentence, run.qd.any()) == (Phase.FINISHED, sentence, False)


def test_run_waits_at_rest_for_the_first_answer(irb140):
    run = run_of(irb140, cond_time=0.0)
    run.measured(run.q, 1.0)
    assert not run.samples(40).qd.any()
    assert (run.phase, run.converged) == (Phase.WAITING, False)
    run.stop()
    assert run.phase is Phase.FINISHED
    run = taken(irb140, SensorMessage(T=np.eye(4)), stop="ramp_down")
    assert (run.phase, run.fault.number) == (Phase.FINISHED, 41826)


@pytest.mark.parametrize("ramp_out", [0.005, 0.3])
def test_stop_is_linear_and_takes_the_ramp_time(irb140, ramp_out):
    settings = {"level": 0, "max_speed_deviation": 30.0, "ramp_out_time": ramp_out}
    run = taken(irb140, SensorMessage(q=HOME - 0.9), **settings)
    run.samples(700)
    speed, N = run.qd, round(ramp_out / DT)
    run.stop(LOST)
    first = run.samples(3).qd
    run.stop(Fault(0, "another", "later"))
    qd = np.concatenate([first, run.samples(N + 2).qd])
    expected = np.maximum(1.0 - np.arange(N + 5) / N, 0.0)[:, None] * speed
    np.testing.assert_allclose(qd, expected, rtol=1e-12, atol=0.0)
    assert np.abs(speed).max() == np.deg2rad(30.0)
    assert (run.phase, run.fault) == (Phase.FINISHED, LOST)
    run.take(SensorMessage(q=HOME))
    assert not run.samples(4).qd.any()


def test_stop_near_the_end_of_a_range_is_faster(irb140):
    settings = {"pos_corr_gain": 0.0, "ramp_out_time": 2.0}
    run = taken(irb140, SensorMessage(qd=np.array([0, 2.0, 0, 0, 0, 0])), **FAST, **settings)
    run.samples(1000)
    run.stop()
    q = run.samples(2100).q[:, 1]
    assert irb140.q_max[1] - 1e-3 < q[-1] <= irb140.q_max[1] + 1e-12


@pytest.mark.parametrize(("inside", "ends"), [(0.49, True), (0.51, False)])
def test_run_ends_after_cond_time_within_the_window(irb140, inside, ends):
    """The measured angles decide, not the commanded ones."""
    run = taken(irb140, SensorMessage(q=HOME + 0.1), cond_time=0.2, max_speed_deviation=1000.0)
    measured = HOME + 0.1 + np.deg2rad(inside) * np.array([1, -1, 1, 0, 0, 1])
    for cycle in range(80):
        run.measured(HOME if cycle == 20 else measured, 0.004)  # outside the window once
        run.samples(4)
        if run.phase is not Phase.GUIDED:
            break
    assert (run.converged, cycle) == (ends, 70 if ends else 79)
    assert run.phase is (Phase.STOPPING if ends else Phase.GUIDED)


def test_windows_apply_per_joint_and_only_to_guided_joints(irb140):
    away = np.deg2rad([0.9, 1.9, 0, 0, 0, 0])
    for window, axes, expected in (
        ("1,2,1,1,1,1", None, True),
        ("2,1,1,1,1,1", None, False),
        ("1", "1", True),
    ):
        run = taken(irb140, SensorMessage(q=HOME), cond_window=window, axes=axes)
        run.measured(HOME + away, 0.004)
        assert run.converged is expected


def test_run_with_no_wait_cond_does_not_end(irb140):
    run = taken(irb140, SensorMessage(q=HOME), cond_time=0.01, no_wait_cond=True)
    to_the_end(run, 200)
    assert (run.phase, run.converged) == (Phase.GUIDED, True)
    run.stop()
    assert run.phase is Phase.FINISHED


def test_ramp_down_returns_to_the_start(irb140):
    """The return is a smooth straight line in joint space within speed and deceleration limits."""
    goal = HOME + np.deg2rad([20.0, -10.0, 5.0, 0.0, 1.0, -20.0])
    settings = {"cond_time": 0.1, "max_speed_deviation": 40.0, "ramp_time": 0.1}
    run = taken(irb140, SensorMessage(q=goal), stop="ramp_down", **settings)
    _, q, qd, _ = to_the_end(run)
    assert run.fault is None
    assert (run.q.tolist(), run.qd.tolist()) == (HOME.tolist(), [0.0] * 6)
    first = int(np.flatnonzero(~qd.any(axis=1) & (np.abs(q - goal).max(axis=1) < np.deg2rad(0.5)))[0])
    way = HOME - q[first]
    N = int(np.ceil(1.875 * np.abs(way).max() / np.deg2rad(40.0) / DT))
    time = np.minimum(np.arange(len(q) - first) / N, 1.0)
    np.testing.assert_allclose(q[first:], q[first] + betainc(3, 3, time)[:, None] * way, **EXACT)
    assert np.abs(qd[first:]).max() == pytest.approx(np.deg2rad(40.0), rel=1e-3)
    assert np.abs(qd[first:]).max() <= np.deg2rad(40.0)


def test_return_motion_takes_the_longest_required_duration():
    """The peak speed of 10 x^3 - 15 x^4 + 6 x^5 is 15/8, its peak acceleration 10 / sqrt(3)."""

    def back(duration, deceleration):
        return ReturnMotion(
            np.zeros(2), np.array([0.3, -0.6]), duration, np.ones(2), deceleration * np.ones(2), DT
        )

    assert back(2.0, 9.0).count == 2000
    assert back(0.1, 9.0).count == 1125  # 15/8 0.6
    slow = back(0.1, 0.5)
    assert slow.count == 2633  # sqrt(10 / sqrt(3) 0.6 / 0.5) s, in whole periods of 1 ms
    motion = np.array([slow(k)[1] for k in range(slow.count + 1)])
    assert np.abs(np.diff(motion, 2)).max() / DT**2 == pytest.approx(0.5, rel=1e-3)


def test_fault_prevents_or_stops_the_return_motion(irb140):
    faulty, returning = (
        taken(irb140, SensorMessage(q=HOME + 0.2), stop="ramp_down", **FAST) for _ in range(2)
    )
    faulty.samples(200)
    faulty.stop(LOST)
    faulty.samples(10)
    assert faulty.phase is Phase.FINISHED
    assert np.abs(faulty.q - HOME).min() > 0.01
    returning.samples(200)
    returning.stop()
    returning.samples(60)
    returning.stop()
    assert returning.phase is Phase.RETURNING
    returning.stop(LOST)
    returning.samples(10)
    assert (returning.phase, returning.fault, returning.qd.any()) == (Phase.FINISHED, LOST, False)
