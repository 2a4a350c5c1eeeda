"""Guidance settings: defaults of the manual, and one sentence for each invalid setting."""

import math

import numpy as np
import pytest

from twin.egm.guidance.settings import GuidanceSettings
from twin.errors import EgmError


def test_defaults_are_those_of_the_manual():
    settings = GuidanceSettings()
    assert settings.cycle == 0.004
    assert (settings.gain, settings.bandwidth) == (5.0, 20.0)
    assert settings.speed_limit == np.deg2rad(1.0)
    assert settings.position_limit == np.deg2rad(1000.0)
    assert settings.ramp_in == settings.ramp_out == 0.5
    np.testing.assert_allclose(settings.window(6), np.full(6, np.deg2rad(0.5)), rtol=1e-15)
    assert settings.joints(6) == (0, 1, 2, 3, 4, 5)
    assert GuidanceSettings(mode="path").cycle == 0.048
    assert [GuidanceSettings(level=level).bandwidth for level in (0, 2)] == [None, 20.0]


def test_arguments_override_system_parameters():
    set_to = {"position_gain": 20.0, "pos_corr_gain": 0.3, "lp_filter": 100, "ramp_time": 0.2}
    settings = GuidanceSettings(**set_to, ramp_in_time=0.05, sample_rate=16)
    found = settings.gain, settings.bandwidth, settings.ramp_in, settings.ramp_out, settings.cycle
    assert found == (20.0 * 0.3, 100, 0.05, 0.2, 0.016)
    assert GuidanceSettings(sample_rate=np.int64(24), mode="path").cycle == 0.024
    assert GuidanceSettings(lp_filter=0.0).bandwidth is None


def test_windows_and_joints_are_set_individually():
    settings = GuidanceSettings(cond_window="0.5, 0.5,1,1,1,2", axes="1, 3")
    np.testing.assert_array_equal(settings.window(6), np.deg2rad([0.5, 0.5, 1, 1, 1, 2]))
    assert settings.joints(6) == (0, 2)
    assert GuidanceSettings(mode="pose", axes="x,rz").axis_names == ("x", "rz")
    assert GuidanceSettings(cond_window=2).window(3).tolist() == np.deg2rad([2.0, 2.0, 2.0]).tolist()
    with pytest.raises(EgmError, match=r"'0.5, 0.5,1,1,1,2': valid is one number, or one number per joint"):
        settings.window(5)
    with pytest.raises(EgmError, match="the robot has 2 joints, valid are 1 to 2"):
        settings.joints(2)


WRONG = {
    "mode is 'joints': valid is 'joint' or 'pose' or 'path'": {"mode": "joints"},
    "sample_rate is 6: in joint mode valid are multiples of 4 ms up to 1000 ms": {"sample_rate": 6},
    "sample_rate is 28: in path mode valid are multiples of 24": {"sample_rate": 28, "mode": "path"},
    "cond_time is nan": {"cond_time": math.nan},
    "cond_window is '0.5,': valid": {"cond_window": "0.5,"},
    "cond_window is '1,2': in pose mode valid is one number": {"cond_window": "1,2", "mode": "pose"},
    "stop is 'ramp_down': in path mode valid is 'hold'": {"stop": "ramp_down", "mode": "path"},
    "no_wait_cond is 1: valid is True or False": {"no_wait_cond": 1},
    "axes is '1,1': ": {"axes": "1,1"},
    "axes is 'x': in path mode valid are some of y,z, each once": {"axes": "x", "mode": "path"},
    "corr_frame is 7: valid is a text": {"corr_frame": 7},
    "corr_frame is valid only in pose mode, the mode is joint": {"corr_frame": "0,0,0"},
    "cond_window is too long: valid": {"cond_window": [0.5] * 100},
}


@pytest.mark.parametrize("sentence", WRONG)
def test_invalid_setting_is_reported_in_one_sentence(sentence):
    with pytest.raises(EgmError) as caught:
        GuidanceSettings(**WRONG[sentence])
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_number_outside_of_its_range_is_reported():
    for name, value, valid in (
        ("level", 3, "a whole number from 0 to 2"),
        ("position_gain", 20.1, "a number from 0 to 20"),
        ("pos_corr_gain", -0.1, "a number from 0 to 1"),
        ("lp_filter", 101.0, "a number from 0 to 100"),
        ("max_speed_deviation", 0.0, ""),
        ("comm_timeout", 0, ""),
        ("ramp_time", 0.004, "a number from 0.005 to 10"),
        ("ramp_out_time", 11, ""),
    ):
        with pytest.raises(EgmError, match=f"^{name} is {value}: valid is {valid}"):
            GuidanceSettings(**{name: value})
