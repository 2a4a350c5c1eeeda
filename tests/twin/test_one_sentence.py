"""Misuse from Python gets one clear sentence."""

import os

import pytest

import twin
from controllers.plugin_controllers import MyController
from twin.control.plant import AnalyticPlant
from twin.errors import PluginError, TwinError, UnknownNameError


def test_a_pose_that_has_another_name(irb140):
    with pytest.raises(
        UnknownNameError, match=r"unknown pose 'tset_1', did you mean 'test_1'\?: known are zero"
    ):
        irb140.poses["tset_1"]
    assert "home" not in irb140.poses


def test_a_name_in_the_place_of_a_robot():
    with pytest.raises(ValueError, match=r"expected a Robot, as twin\.load gives it, got 'irb140'"):
        twin.forward_kinematics("irb140", [0.0] * 6)


def test_a_robot_loads_from_a_folder_whose_name_is_not_utf_8(tmp_path, monkeypatch):
    folder = os.path.join(os.fsencode(tmp_path), b"odd\xff")
    os.mkdir(folder)
    monkeypatch.chdir(os.fsdecode(folder))
    assert twin.load("irb140").n == 6


def test_a_payload_that_is_none(irb140):
    with pytest.raises(ValueError, match=r"expected a twin\.Payload or None, got 3: write"):
        irb140.with_payload(3)
    with pytest.raises(ValueError, match="expected the payload's mass to be real numbers, got text"):
        twin.Payload("2")


def test_a_name_that_is_near():
    with pytest.raises(UnknownNameError, match="unknown robot 'IRB140', did you mean 'irb140'"):
        twin.load("IRB140")


@pytest.mark.parametrize("plant", [AnalyticPlant, twin.Simulation])
def test_a_time_step_in_text(plant, irb140):
    with pytest.raises(ValueError, match="expected the time step to be real numbers, got text"):
        plant(irb140, time_step="1e-3")


def test_torques_that_overflow(irb140):
    with twin.Simulation(irb140) as arm, pytest.raises(TwinError, match="the torques are too large"):
        arm.step([1e308] * 6)


def test_a_reset_that_fails():
    class Law:
        def reset(self):
            raise KeyError("r")

    with pytest.raises(PluginError, match=r"controller 'law' failed in its reset: .*KeyError"):
        MyController("law", Law).reset()
