"""Stiffness of gears from two encoders: exact from the engine's log, within deviations from noisy tables."""

from dataclasses import replace

import numpy as np
import pytest

import twin
from controllers.pid import PD
from scenarios.shell.command_line import main
from tests.support import tasks
from twin.data.identification.measurements import measurements_of_log
from twin.data.identification.payload import identify_payload
from twin.data.identification.result import gear_springs

pytestmark = [
    pytest.mark.slow("fits recordings"),
    pytest.mark.filterwarnings("ignore:steps of .* are too long"),
]


@pytest.fixture(scope="module")
def log():
    return tasks.run("excitation", robot="irb140", drives="elastic", time_step=0.002).log


def table(log, rng, torque_noise, encoder_noise, zero=1e-3):
    """Both encoders and the torques with noise; the zeros of the encoders differ."""
    q, q_motor = (one + encoder_noise * rng.normal(size=one.shape) for one in (log.q, log.q_motor + zero))
    tau = log.tau + torque_noise * np.std(log.tau, axis=0) * rng.normal(size=log.q.shape)
    return twin.logs.torque_recording(log.t, q, tau, q_motor=q_motor)


def write(path, *columns):
    names = ["t", *(f"{name}{k}" for name in ("q", "tau", "qm") for k in range(1, 7))]
    np.savetxt(path, np.column_stack(columns), delimiter=",", header=",".join(names), comments="")


def relative(found, name, true):
    return np.abs(np.array([getattr(one, name) for one in found.springs]) / true - 1.0)


def test_springs_dampers_and_all_parameters_are_exact_from_an_exact_log(log):
    found, drives = twin.identify(log.robot, log), log.robot.drives
    true = found.model.base.K @ found.model.parameters.values
    assert {"J1", "J2"} <= set(found.model.base.symbols)  # rotors turn apart from the links
    np.testing.assert_allclose(found.beta, true, rtol=1e-8, atol=1e-10)
    assert np.max(relative(found, "stiffness", drives.stiffness)) < 1e-8
    assert np.max(relative(found, "damping", drives.damping)) < 1e-7


@pytest.mark.parametrize(
    ("friction_at", "both_sides"), [(("joint", "motor"), False), (("motor", "joint"), True)]
)
def test_friction_behind_the_gear_is_part_of_the_torque_that_twists_it(friction_at, both_sides):
    """The motors are coupled, so that shafts at the motors turn with both."""
    drives = twin.Drives([100.0, -80.0], 1e-4, coulomb=[0.5, 0.2], viscous=[0.3, 0.1], stiffness=[3e3, 2e3],
                         damping=[5.0, 2.0], coupling=[[1, 0], [1, 1]], friction_at=friction_at)  # fmt: skip
    arm = twin.load("two_link").with_drives("elastic", drives)
    moves = [twin.quintic(*ends, duration=0.8) for ends in (([0, 0], [1, -1]), ([1, -1], [-0.5, 0.7]))]
    logs = [
        twin.run_closed_loop(twin.AnalyticPlant(arm, 1e-3), PD(arm), twin.sample(one, 1e-3)) for one in moves
    ]
    found = twin.identify(arm, *logs, both_sides=both_sides)
    true = found.model.base.K @ found.model.parameters.values
    np.testing.assert_allclose(found.beta, true, rtol=1e-8, atol=1e-9)
    assert np.max(relative(found, "stiffness", drives.stiffness)) < 1e-8


def test_stiffness_of_noisy_tables_is_within_its_deviations(log):
    stiffness = log.robot.drives.stiffness
    for seed in (1, 2):
        found = twin.identify(log.robot, table(log, np.random.default_rng(seed), 0.02, 3e-6))
        assert [one is not None for one in found.springs[:4]] == [True] * 4
        for one, true in zip(found.springs, stiffness, strict=True):
            assert one is None or abs(one.stiffness - true) < 4.0 * one.deviation
            assert one is None or one.damping is None
        assert np.max(np.abs([one.stiffness for one in found.springs[:3]] / stiffness[:3] - 1.0)) < 0.01


def test_a_rigid_gear_has_no_spring(log):
    measured = measurements_of_log(log)
    rigid = replace(measured, motor=measured.motor._replace(q=measured.q, qd=measured.qd, qdd=measured.qdd))
    found = twin.identify(log.robot, log)
    assert gear_springs(found.model, found.beta, found.covariance, [rigid]) == (None,) * 6
    noise = 1e-6 * np.random.default_rng(1).normal(size=(2, *measured.q.shape))
    motor = rigid.motor._replace(q=measured.q + noise[0], qd=measured.qd + noise[1])
    noisy = replace(rigid, motor=motor)  # a twist within its deviation
    assert gear_springs(found.model, found.beta, found.covariance, [noisy]) == (None,) * 6


def test_the_command_prints_the_springs_and_writes_them(log, rng, tmp_path, capsys):
    recording, N = table(log, rng, 0.001, 1e-7), log.robot.drives.motor_matrix
    write(tmp_path / "both.csv", recording.t, recording.q, recording.tau, recording.q_motor @ N.T)
    out = tmp_path / "found.toml"
    words = [str(tmp_path / "both.csv"), "--robot", "irb140", "--motor-side", "positions", "--out", str(out)]
    assert main(["identify", *words]) == 0
    assert "springs of the gears, from the encoders on both sides" in capsys.readouterr().out
    written = twin.load(out).drives
    assert np.max(np.abs(written.stiffness[:4] / log.robot.drives.stiffness[:4] - 1.0)) < 0.02
    assert np.max(np.abs(written.damping - log.robot.drives.damping)) == 0


def test_positions_of_coupled_motors_are_read_in_joint_units(log, rng, tmp_path):
    coupling = np.eye(6)
    coupling[5, 4] = 1.0
    robot = log.robot.with_drives("elastic", replace(log.robot.drives, coupling=coupling))
    q, q_motor = rng.normal(size=(2, 10, 6))
    write(tmp_path / "both.csv", np.arange(10.0), q, q, q_motor @ robot.drives.motor_matrix.T)
    form = twin.logs.TableForm(motor_side="positions")
    read = twin.logs.read_torque_recording(tmp_path / "both.csv", robot, form)
    np.testing.assert_allclose(read.q_motor, q_motor, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(read.q, q)
    with pytest.raises(ValueError, match=r"expected q_motor of shape \(\d+, 6\), got \(3, 6\)"):
        twin.logs.torque_recording(log.t, log.q, log.tau, q_motor=log.q[:3])


def test_a_payload_is_exact_from_an_exact_log_of_elastic_drives():
    log = tasks.run("joint_tracking", payload="3,0.01,0.02,0.1", drives="elastic", duration=0.5).log
    estimate = identify_payload(log.robot, log)
    np.testing.assert_allclose(estimate.values[:4], [3.0, 0.01, 0.02, 0.1], rtol=0, atol=1e-8)
