"""The engine prints nothing, refuses wrong arguments, and leaves nothing behind where it fails."""

import time

import numpy as np
import pybullet
import pytest

from twin.base.errors import TwinError
from twin.physics.engine.simulation import Simulation


def test_nothing_is_printed_and_a_time_step_is_positive(irb140, capfd):
    for time_step in (0.0, -1e-3, np.nan, np.inf):
        with pytest.raises(ValueError, match="time step above 0 s"):
            Simulation(irb140, time_step=time_step)
    with Simulation(irb140) as simulation:
        simulation.step(np.zeros(6))
    assert capfd.readouterr() == ("", "")


def test_wrong_arguments(irb140):
    with Simulation(irb140) as simulation:
        step, reset, state, picture = simulation.step, simulation.reset, simulation.state, simulation.picture
        writable = r"out to be a writable C-contiguous float64 array \(2, 6\)"
        for call, given, told in (
            *(
                (call, (np.zeros(5),), r"of shape \(6,\), got \(5,\)")
                for call in (reset, step, simulation.jacobian)
            ),
            (step, (np.zeros((1, 6)),), r"tau of shape \(6,\), got \(1, 6\)"),
            (reset, (np.full(6, np.nan),), "q to be finite"),
            (step, (np.zeros(6), np.full(6, np.inf)), r"finite wrench of shape \(6,\)"),
            (simulation.draw_path, (np.zeros(3),), r"points of shape \(N, 3\)"),
            (state, (np.zeros((2, 6), dtype=np.float32),), writable),
            (state, (np.zeros((6, 2)),), writable),
            (state, (np.zeros((4, 6))[::2],), writable),
            (state, (np.zeros((6, 2)).T,), writable),
            (state, (np.broadcast_to(0.0, (2, 6)),), writable),
            (state, ([0.0] * 12,), writable),
            (picture, (-1, 10), "expected a width of 1 to 4096 pixels, got -1"),
            (picture, (10, 10**6), "expected a height of 1 to"),
            (picture, (10.5, 10), "expected a width"),
        ):
            with pytest.raises(ValueError, match=told):
                call(*given)
        for camera in ({"distance": np.nan}, {"target": (0, np.inf, 0)}, {"target": (0, 0)}):
            with pytest.raises(ValueError, match="expected finite angles, distance and target"):
                simulation.pixels(np.zeros(3), 10, 10, **camera)
        fit = np.zeros((2, 6))
        reset(np.ones(6))
        assert state(fit) is fit
        np.testing.assert_array_equal(fit[0], np.ones(6))


@pytest.mark.parametrize("mode", ["ideal", "rigid"])
def test_closed_simulation_raises(irb140, mode):
    simulation = Simulation(irb140.with_drives(mode))
    simulation.close()
    simulation.close()
    with Simulation(irb140) as other:  # which gets the number of the closed one
        other.reset(np.ones(6))
        for call in (simulation.state, simulation.motor_state, simulation.tool_pose, simulation.picture):
            with pytest.raises(TwinError, match="closed already"):
                call()
        for call in (simulation.reset, simulation.step, simulation.jacobian):
            with pytest.raises(TwinError, match="closed already"):
                call(np.zeros(6))
        np.testing.assert_array_equal(other.state()[0], np.ones(6))


def test_an_error_of_pybullet_is_named(irb140, monkeypatch):
    def refuse(*_, **__):
        raise pybullet.error("out of sorts")

    with Simulation(irb140) as simulation:
        monkeypatch.setattr(simulation, "_read", refuse)
        with pytest.raises(TwinError, match="PyBullet: out of sorts"):
            simulation.state()


def test_real_time_keeps_pace_with_the_clock(irb140):
    with Simulation(irb140, real_time=True) as simulation:
        simulation.reset(np.zeros(6))
        began = time.perf_counter()
        for _ in range(60):
            simulation.step(np.zeros(6))
        assert time.perf_counter() - began >= 0.055


def test_a_picture_shows_the_robot(irb140):
    with Simulation(irb140) as simulation:
        simulation.reset(np.zeros(6))
        first = simulation.picture(160, 120)
        simulation.reset(np.array([1.0, 0.5, 0, 0, 0, 0]))
        second = simulation.picture(160, 120)
        close = simulation.picture(160, 120, distance=0.8, target=[0, 0, 0.3], yaw_deg=0, pitch_deg=-80)
    assert first.shape == (120, 160, 3)
    assert first.dtype == np.uint8
    shown, nearer = ((image < 255).any(axis=2).sum() for image in (first, close))
    assert 200 < shown < nearer
    assert (first != second).any()


def test_a_step_that_is_refused_leaves_nothing_behind(irb140):
    """Neither the wrench that came with a wrong torque, nor the torque that came with a wrong wrench."""
    push, turn, flat = np.full(6, 50.0), np.full(6, 500.0), np.zeros((3, 3))
    refused = (
        (np.zeros(5), push, None, "expected tau of shape"),
        (np.full(6, np.nan), push, None, "expected tau to be finite"),
        (turn, np.full(6, np.nan), None, "expected a finite wrench"),
        (turn, push, flat, "T_flange_tool"),
    )
    with Simulation(irb140) as simulation:
        after = []
        for wrong in (None, *refused):
            simulation.reset(irb140.poses["test_1"])
            if wrong is not None:
                *arguments, told = wrong
                with pytest.raises((ValueError, TwinError), match=told):
                    simulation.step(*arguments)
            simulation.step(np.zeros(6))
            after.append(simulation.state()[1])
    for speeds in after[1:]:
        np.testing.assert_array_equal(speeds, after[0])
