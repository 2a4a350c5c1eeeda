"""Misuse from Python gets one clear sentence."""

import os

import pytest

import twin
from controllers.plugin_controllers import MyController
from twin.control.plant import AnalyticPlant
from twin.errors import PluginError, TwinError, UnknownNameError


def test_a_robot_loads_from_a_folder_whose_name_is_not_utf_8(tmp_path, monkeypatch):
    folder = os.path.join(os.fsencode(tmp_path), b"odd\xff")
    os.mkdir(folder)
    monkeypatch.chdir(os.fsdecode(folder))
    assert twin.load("irb140").n == 6


def test_arguments_of_another_kind_and_names_that_are_near(irb140):
    for call, told in (
        (lambda: irb140.poses["tset_1"], r"unknown pose 'tset_1', did you mean 'test_1'\?: known are zero"),
        (lambda: twin.load("IRB140"), "unknown robot 'IRB140', did you mean 'irb140'"),
        (lambda: twin.forward_kinematics("irb140", [0.0] * 6), r"expected a Robot, as twin\.load gives it"),
        (lambda: irb140.with_payload(3), r"expected a twin\.Payload or None, got 3: write"),
        (lambda: twin.Payload("2"), "expected the payload's mass to be real numbers, got text"),
        (lambda: AnalyticPlant(irb140, time_step="1e-3"), "the time step to be real numbers, got text"),
        (lambda: twin.Simulation(irb140, time_step="1e-3"), "the time step to be real numbers, got text"),
    ):
        with pytest.raises((UnknownNameError, ValueError), match=told):
            call()


def test_torques_that_overflow(irb140):
    with twin.Simulation(irb140) as arm, pytest.raises(TwinError, match="the torques are too large"):
        arm.step([1e308] * 6)


def test_a_reset_that_fails():
    class Law:
        def reset(self):
            raise KeyError("r")

    with pytest.raises(PluginError, match=r"controller 'law' failed in its reset: .*KeyError"):
        MyController("law", Law).reset()
