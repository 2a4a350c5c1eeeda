"""Limits that follow from the closed loop, and comparisons with published poses."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad

import controllers
import twin
from controllers.gains import diagonal_inertia
from scenarios.base import Config
from scenarios.checks import bounds
from scenarios.checks.motion_range import arm_metrics, beyond_passive_range
from scenarios.checks.replay import whole_run_limit
from scenarios.checks.tracking import (
    agreement_metrics,
    bound_metric,
    error_metrics,
    follow,
    sampled,
    tracking_metrics,
    validity_metrics,
)
from scenarios.running import registry
from tests.support.example_logs import made_log, sliding_log
from tests.support.scenario_cases import full_run
from twin.logs.figures import joint_error, place_of_largest, unit_of_largest
from twin.robot.limits import violations


def test_whole_run_limit_follows_rounding_amplified_by_the_loop():
    """The limit is near the observed difference in a soft and in a stiff loop."""
    for name, settings in (
        ("joint_tracking", {"duration": 1.0}),
        ("payload_mismatch", {"mounting": "inverted", "bandwidth": 19.0}),
    ):
        scenario = registry.find(name)
        log = scenario.run(scenario.Config(robot="irb1400", controller="pid", **settings))
        seen = np.max(np.abs(log.q - log.arrays["q_model"]))
        assert 0.2 * seen < np.max(log.arrays["spread"]) < 10 * seen
        assert seen <= whole_run_limit(log)
        nudged = dataclasses.replace(log, q=log.q + 2 * whole_run_limit(log))
        whole = agreement_metrics(nudged)[0]
        assert whole.name == "engine - model, whole run"
        assert not whole.passes


LAWS = """
import numpy as np
from twin import ControlLaw, mass_matrix

def spring(state, reference, parameters, memory, model):
    return parameters[0] * (reference.q - state.q) - parameters[1] * state.qd

def spoken(state, reference, parameters, memory, model):
    return spring(state, reference, parameters, memory, model) + 0.0 * float(f"{state.t:.3f}")

class Spring(ControlLaw):
    def __init__(self, robot, bandwidth, period, law=spring):
        M = np.diag(mass_matrix(robot, np.zeros(6)))
        super().__init__(robot, law, [400 * M, 40 * M])

class Spoken(Spring):
    def __init__(self, robot, bandwidth, period):
        super().__init__(robot, bandwidth, period, spoken)
"""


def test_user_controller_has_whole_run_limit_if_it_compiles(tmp_path):
    """The kinematic loop of the IRB 1400 rounds more in PyBullet than in the model, so kicks are needed."""
    (tmp_path / "laws.py").write_text(LAWS, encoding="utf-8")
    scenario = registry.find("joint_tracking")
    limits = {}
    for law in ("Spring", "Spoken"):
        config = scenario.Config(robot="irb1400", controller=f"{tmp_path}/laws.py:{law}", duration=0.3)
        log = scenario.run(config)
        metrics = {metric.name: metric for metric in agreement_metrics(log)}
        assert all(metric.passes for metric in metrics.values())
        assert metrics["samples not replayed"].limit == 0
        limits[law] = metrics["engine - model, whole run"].limit
    assert 1e-15 < limits["Spring"] < 1e-10
    assert limits["Spoken"] is None


def test_unknown_controller_has_no_bound():
    log, _ = full_run("joint_tracking", "computed_torque")
    names = [metric.name for metric in tracking_metrics(full_run("joint_tracking", "pd")[0])]
    assert "joint error / its bound" in names
    strange = dataclasses.replace(log, arrays={**log.arrays, "known_law": np.array(False)})
    assert "joint error / its bound" not in [metric.name for metric in tracking_metrics(strange)]
    error = tracking_metrics(strange)[0]
    assert (error.name, error.limit) == ("largest joint error", None)


def test_engine_tool_is_compared_with_printed_poses():
    """The tool is in the printed pose under computed torque; under PD it has the error of the arm."""
    for law in ("computed_torque", "pd"):
        log, metrics = full_run("pose_path", law)
        assert log.arrays["stop_names"].tolist() == ["test_3", "test_1", "test_1", "test_3"]
        rows = {metric.name: metric for metric in metrics if metric.name.startswith("tool at")}
        assert rows.keys() == {"tool at test_1 - printed", "tool at test_3 - printed"}
        for row in rows.values():
            assert (row.limit is None) == (law == "pd")
            assert row.value < 3e-15 if law == "computed_torque" else 0.04 < row.value < 0.06
        first, last = log.arrays["tool_at_stops"][[0, -1]]
        np.testing.assert_allclose(np.abs(first), np.abs(log.pose[0]), rtol=0, atol=1e-14)
        np.testing.assert_allclose(np.abs(last), np.abs(log.pose[-1]), rtol=0, atol=1e-14)


def test_printed_pose_outside_the_tour_is_compared_with_the_engine():
    log, metrics = full_run("pose_path", "computed_torque", "irb1400")
    assert log.arrays["put_names"].tolist() == ["zero"]
    (row,) = (metric for metric in metrics if metric.name == "tool put at zero - printed")
    assert row.passes
    moved = log.arrays["tool_when_put"] + 1e-4
    log = dataclasses.replace(log, arrays={**log.arrays, "tool_when_put": moved})
    (row,) = (m for m in registry.find("pose_path").metrics(log) if m.name.startswith("tool put"))
    assert not row.passes


# Violations of ranges and speed limits in closed loops, rollouts and sweeps.


def swing(robot, amplitude=0.3, duration=0.5):
    return twin.sample(
        twin.sines(robot.poses["zero"], np.full(6, amplitude), np.full(6, 1.0), duration), 1e-3
    )


def pulled(state, reference, parameters, memory, model):
    """Return torques that move joint 2 beyond its range and joint 6 beyond its speed limit."""
    tau = np.zeros(len(state.q))
    tau[1], tau[5] = parameters[0, 1], parameters[0, 5]
    return tau


def test_violations_name_largest_excess_of_each_limit(irb140):
    t = np.linspace(0.0, 1.0, 5)
    q, qd = np.zeros((2, 5, 6))
    assert violations(irb140, t, q, qd) == ()
    q[2, 4], q[3, 4], q[1, 0] = irb140.q_max[4] + 0.1, irb140.q_max[4] + 0.2, irb140.q_min[0] - 0.15
    qd[4, 5] = -1.5 * irb140.qd_max[5]
    position, speed = violations(irb140, t, q, qd)
    assert position[:5] == ("position", "joint_5", 0.75, q[3, 4], irb140.q_max[4])
    assert speed[:5] == ("speed", "joint_6", 1.0, qd[4, 5], -irb140.qd_max[5])
    assert str(position).startswith("joint_5 is at ")
    assert "at t = 0.75 s, its limit is" in str(position)
    assert str(speed).startswith("joint_6 moves at -675 deg/s")


def test_excess_of_passive_joints_counts_at_both_ends_of_their_ranges(irb1400):
    q = np.random.default_rng(0).uniform(irb1400.q_min, irb1400.q_max, (200, 6))
    angles = irb1400.passive_angles(q)
    endless = np.full(angles.shape[1], np.inf)
    for arm, outside in (
        (replace(irb1400, passive_max=endless), angles < irb1400.passive_min),
        (replace(irb1400, passive_min=-endless), angles > irb1400.passive_max),
    ):
        beyond = outside.any(axis=1)
        assert 0 < np.count_nonzero(beyond) < len(q)
        np.testing.assert_array_equal(beyond_passive_range(arm, q) > 0, beyond)


def test_motion_that_ends_on_a_limit_is_no_violation(irb140):
    """A move of minimum duration ends on its limits up to rounding."""
    q = np.stack([irb140.q_min - 1e-10, irb140.q_max + 1e-10])
    assert violations(irb140, np.arange(2.0), q, np.stack([irb140.qd_max * (1 + 1e-10)] * 2)) == ()
    beyond = violations(irb140, np.arange(2.0), 1.0001 * q, np.stack([irb140.qd_max * 1.0001] * 2))
    assert [found.quantity for found in beyond] == ["position", "speed"]


@pytest.mark.parametrize("direction", [1.0, -3.0])  # beyond the upper and the lower end of joint 2
def test_rollout_and_closed_loop_report_equal_violations(irb140, direction):
    """The violations do not depend on the number of stored samples."""
    pull = twin.ControlLaw(irb140, pulled, [[0, 60.0 * direction, 0, 0, 0, -1e-3]])
    reference = twin.sample(twin.sines(np.zeros(6), np.zeros(6), np.ones(6), 0.4), 1e-3)
    rollout = twin.run_rollouts(irb140, pull, reference, every=50)
    log = twin.run_closed_loop(twin.AnalyticPlant(irb140), pull, reference)
    assert rollout.violations == log.violations()
    assert {found.quantity for found in rollout.violations} == {"position", "speed"}
    (position,) = (found for found in rollout.violations if found.quantity == "position")
    assert (position.joint, position.value * direction > 0) == ("joint_2", True)
    assert rollout.failures == ()


def test_payload_sweep_names_rollouts_beyond_limits(irb1400):
    """With a soft PID and unknown loads, no rollout ends early, but some leave their limits."""
    masses = np.array([0.0, 2.0, 5.0])
    arms = [irb1400.with_payload(twin.Payload(mass, (0.0, 0.0, 0.2)) if mass else None) for mass in masses]
    law = controllers.make("pid", irb1400, bandwidth=2.0)
    sweep = twin.run_rollouts(arms, law, swing(irb1400, 0.2, 1.0), every=100)
    assert sweep.failures == ()
    for k, arm in enumerate(arms):
        one = twin.run_rollouts(arm, law, swing(irb1400, 0.2, 1.0))
        of_it = [found for found in sweep.violations if found.rollout == (k,)]
        assert [found._replace(rollout=()) for found in of_it] == list(one.violations)
    assert len(sweep.violations) >= 2
    assert f"in rollout {sweep.violations[-1].rollout[0]}" in str(sweep.violations[-1])


def test_joint_without_limits_has_no_violations(load):
    robot = load(
        '<robot name="free"><link name="a"/><link name="b"><inertial><mass value="1"/><inertia ixx="1" '
        'iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="continuous">'
        '<parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint></robot>'
    )
    assert violations(robot, np.zeros(1), np.full((1, 1), 1e5), np.full((1, 1), 1e5)) == ()


@pytest.mark.parametrize(("joint", "sign"), [(0, 1.0), (5, -1.0)])
def test_arm_checks_cover_both_directions(irb140, joint, sign):
    q, qd = np.zeros((2, 4, 6))
    qd[2, joint] = sign * 1.01 * irb140.qd_max[joint]
    position, speed = arm_metrics(made_log(irb140, q, qd=qd))
    assert position.passes
    assert not speed.passes
    assert speed.value == pytest.approx(1.01, rel=1e-14)
    qd[2, joint] = sign * 0.99 * irb140.qd_max[joint]
    q[1, joint] = (irb140.q_max if sign > 0 else irb140.q_min)[joint] + sign * 1e-3
    position, speed = arm_metrics(made_log(irb140, q, qd=qd))
    assert speed.passes
    assert not position.passes
    assert position.value == pytest.approx(1e-3, rel=1e-9)


# Checks of a run besides its error: ranges, speed limits and torque limits.


@pytest.fixture(scope="module")
def log():
    scenario = registry.find("joint_tracking")
    return scenario.run(scenario.Config(duration=0.05))


def named(metrics, name):
    return next(metric for metric in metrics if metric.name == name)


def test_motion_within_limits_passes_every_check(log):
    assert all(metric.passes for metric in validity_metrics(log))
    assert [metric.value for metric in validity_metrics(log)][:2] == [0.0, 0.0]


@pytest.mark.parametrize(("joint", "end"), [(0, "q_min"), (2, "q_max"), (5, "q_min"), (5, "q_max")])
def test_check_reports_excess_of_reference_beyond_range(log, joint, end):
    """Test one sample of one joint at either end of its range."""
    for beyond in (0.25, 0.0):
        q_ref = log.q_ref.copy()
        q_ref[7, joint] = getattr(log.robot, end)[joint] + (-beyond if end == "q_min" else beyond)
        metric = named(validity_metrics(replace(log, q_ref=q_ref)), "reference beyond the range")
        assert metric.value == pytest.approx(beyond, abs=1e-15)
        assert metric.passes is (beyond == 0.0)


def test_checks_of_speed_and_torque_report_ratio_and_samples(log):
    qd_ref, cut = log.qd_ref.copy(), log.saturated.copy()
    qd_ref[3, 4] = -1.5 * log.robot.qd_max[4]
    cut[2:5, 1] = cut[4, 3] = True
    metrics = validity_metrics(replace(log, qd_ref=qd_ref, saturated=cut))
    for name, value in (("reference speed / its limit", 1.5), ("samples at the torque limit", 4.0)):
        assert named(metrics, name).value == pytest.approx(value, rel=1e-15)
        assert not named(metrics, name).passes


def test_every_check_names_joint_and_time(log):
    """With a disturbed sample 7 of joint 3, the checks of error, model, range, speed and torque name it."""
    struck = {name: getattr(log, name).copy() for name in ("q", "q_ref", "qd_ref", "saturated")}
    struck["q"][7, 2] += 5.0
    struck["q_ref"][7, 2] = log.robot.q_max[2] + 1.0
    struck["qd_ref"][7, 2] = -2 * log.robot.qd_max[2]
    struck["saturated"][7:9, 2] = True
    struck = replace(log, **struck)
    metrics = (*error_metrics(struck), bound_metric(replace(struck, controller="pd")))
    metrics += (*agreement_metrics(struck), *validity_metrics(struck))
    places = {metric.name: metric.where for metric in metrics}
    assert places.pop("largest tool error") == "at t = 0.007 s"
    assert places.pop("engine - model, one step") != ""  # of velocities, which are undisturbed
    assert places.pop("engine - model, every state / its limit") == "joint_3 at t = 0.008 s"  # next step
    assert places.pop("samples not replayed") == ""
    assert places.pop("joint error / its bound").startswith("joint_3 at t = 0.007 s, whose bound is ")
    assert len(places) == 5
    assert set(places.values()) == {"joint_3 at t = 0.007 s"}


def test_place_of_largest_names_largest_magnitude_or_first_nan(log):
    error = np.zeros((51, 6))
    assert place_of_largest(log, error) == ""
    error[3, 1], error[20, 4] = 1.0, -2.0
    assert place_of_largest(log, error) == "joint_5 at t = 0.02 s"
    error[40, 0] = np.nan
    assert place_of_largest(log, error) == "joint_1 at t = 0.04 s"
    assert place_of_largest(log, error[:, 4]) == "at t = 0.02 s"
    assert place_of_largest(log, error[:0]) == ""


def test_unit_of_an_error_is_that_of_its_joint():
    log = sliding_log()
    for kind, unit in (("prismatic", "m"), ("revolute", "rad")):
        error = np.zeros_like(log.q)
        error[3, log.robot.joint_kinds.index(kind)] = 1.0
        assert unit_of_largest(log, error) == unit
        assert unit_of_largest(log, error, "speed") == f"{unit}/s"


# Bounds of the tracking error: their terms, and their distance from the errors of runs.


def run(name, **settings):
    scenario = registry.find(name)
    return scenario.run(scenario.Config(**settings))


@pytest.mark.parametrize(
    ("reference", "steps", "least"),
    [
        ("continuous", 1, 0.94),
        ("continuous", 2, 0.6),
        ("continuous", 5, 0.4),
        ("consistent", 2, 0.6),
        ("consistent", 5, 0.6),
    ],
)
def test_sampling_bound_is_tight(reference, steps, least):
    """The error of every joint is near its bound, within a twentieth if only sampling causes it."""
    log = run("joint_tracking", reference=reference, steps_per_period=steps)
    ratio = np.abs(joint_error(log)).max(axis=0) / bounds.tracking_bound(log)[0]
    assert np.all((least < ratio) & (ratio <= 1.0))


@pytest.mark.parametrize(("law", "least"), [("pd", 0.25), ("pd_gravity", 0.4), ("pid", 0.08)])
def test_bound_for_missing_torque_is_tight(law, least):
    """Half of the bound is its margin; some joint is near the other half, and none exceeds the bound."""
    log = run("joint_tracking", controller=law)
    ratio = np.abs(joint_error(log)).max(axis=0) / bounds.tracking_bound(log)[0]
    assert least < ratio.max() <= 1.0


def test_kernel_areas_agree_with_quadrature():
    """Integrate kernel (1) for PD and that of `s / (s + omega)^3` for PID, split at its zero."""
    log = run("joint_tracking", controller="pd", duration=0.3)
    omega = float(log.arrays["bandwidth"])

    def area(kernel):
        pieces = ((0.0, 2.0 / omega), (2.0 / omega, 4.0))
        return sum(quad(lambda t: abs(kernel(t)), *ends, epsabs=1e-14, limit=200)[0] for ends in pieces)

    pd = area(lambda t: t * np.exp(-omega * t))
    pid = area(lambda t: (t - omega * t**2 / 2) * np.exp(-omega * t))
    assert pd == pytest.approx(1 / omega**2, rel=1e-12)
    of_pd, of_pid = (
        bounds.tracking_bound(dataclasses.replace(log, controller=law))[0] for law in ("pd", "pid")
    )
    np.testing.assert_allclose(of_pid / of_pd, pid / pd, rtol=1e-12)


def test_bound_of_a_resting_joint_includes_coupling_torques():
    """From q = 0 only joint 5 moves; the coupling disturbs joint 6 at rest."""
    config = Config(controller="pd_gravity")
    robot = twin.load("irb140")
    path = twin.sines(0.2 * np.eye(6)[4], 0.2 * np.eye(6)[4], np.full(6, 0.5), 2.0, phase=-np.pi / 2)
    log = follow(config, sampled(config, path), robot)
    error = np.abs(joint_error(log)).max(axis=0)
    assert np.all(error <= bounds.tracking_bound(log)[0])
    assert all(metric.passes for metric in tracking_metrics(log))
    missing = twin.inverse_dynamics(robot, log.q_ref, log.qd_ref, log.qdd_ref) - twin.gravity_torque(
        robot, log.q_ref
    )
    uncoupled = bounds.MARGIN * np.abs(missing).max(axis=0) / (20.0**2 * diagonal_inertia(robot))
    assert error[5] > 10 * uncoupled[5]
