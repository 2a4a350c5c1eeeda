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


def test_arguments_override_system_parameters():
    settings = GuidanceSettings(
        position_gain=20.0, pos_corr_gain=0.3, lp_filter=100, ramp_time=0.2, ramp_in_time=0.05, sample_rate=16
    )
    assert settings.gain == 20.0 * 0.3
    assert (settings.bandwidth, settings.ramp_in, settings.ramp_out, settings.cycle) == (
        100,
        0.05,
        0.2,
        0.016,
    )
    assert GuidanceSettings(sample_rate=np.int64(24), mode="path").cycle == 0.024


@pytest.mark.parametrize("without", [GuidanceSettings(level=0), GuidanceSettings(lp_filter=0.0)])
def test_level_0_and_zero_bandwidth_disable_the_filter(without):
    assert without.bandwidth is None
    assert GuidanceSettings(level=2).bandwidth == 20.0


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
    "level is 3: valid is a whole number from 0 to 2": {"level": 3},
    "level is True: ": {"level": True},
    "level is 1.0: ": {"level": 1.0},
    "position_gain is 20.1: valid is a number from 0 to 20": {"position_gain": 20.1},
    "position_gain is nan": {"position_gain": math.nan},
    "position_gain is '5'": {"position_gain": "5"},
    "position_gain is None": {"position_gain": None},
    "pos_corr_gain is -0.1: valid is a number from 0 to 1": {"pos_corr_gain": -0.1},
    "lp_filter is 101.0: valid is a number from 0 to 100": {"lp_filter": 101.0},
    "sample_rate is 6: in joint mode valid are multiples of 4 ms up to 1000 ms": {"sample_rate": 6},
    "sample_rate is 0: valid is a whole number from 4 to 1000": {"sample_rate": 0},
    "sample_rate is 28: in path mode valid are multiples of 24": {"sample_rate": 28, "mode": "path"},
    "max_pos_deviation is -1": {"max_pos_deviation": -1},
    "max_speed_deviation is 0.0": {"max_speed_deviation": 0.0},
    "max_speed_deviation is inf": {"max_speed_deviation": math.inf},
    "cond_time is -1.0": {"cond_time": -1.0},
    "cond_time is nan": {"cond_time": math.nan},
    "cond_window is '0.5,': valid": {"cond_window": "0.5,"},
    "cond_window is '-1': valid": {"cond_window": "-1"},
    "cond_window is 'nan': valid": {"cond_window": "nan"},
    "cond_window is '1,2': in pose mode valid is one number": {"cond_window": "1,2", "mode": "pose"},
    "cond_window is None": {"cond_window": None},
    "ramp_time is 0.004: valid is a number from 0.005 to 10": {"ramp_time": 0.004},
    "ramp_in_time is 0.0": {"ramp_in_time": 0.0},
    "ramp_out_time is 11": {"ramp_out_time": 11},
    "stop is 'ramp': valid is 'hold' or 'ramp_down'": {"stop": "ramp"},
    "stop is 'ramp_down': in path mode valid is 'hold'": {"stop": "ramp_down", "mode": "path"},
    "comm_timeout is 0": {"comm_timeout": 0},
    "no_wait_cond is 1: valid is True or False": {"no_wait_cond": 1},
    "axes is '0': in joint mode valid are joint numbers": {"axes": "0"},
    "axes is '1,1': ": {"axes": "1,1"},
    "axes is '': ": {"axes": ""},
    "axes is 'x': in joint mode": {"axes": "x"},
    "axes is 'x': in path mode valid are some of y,z, each once": {"axes": "x", "mode": "path"},
    "axes is 'x,1': in pose mode valid are some of x,y,z,rx,ry,rz": {"axes": "x,1", "mode": "pose"},
    "corr_frame is 7: valid is a text": {"corr_frame": 7},
    "corr_frame is valid only in pose mode, the mode is joint": {"corr_frame": "0,0,0"},
    "sensor_frame is valid only in pose mode, the mode is path": {"sensor_frame": "0,0,0", "mode": "path"},
    "corr_frame_type is 'joint': valid is 'base' or": {"corr_frame_type": "joint"},
    "cond_window is too long: valid": {"cond_window": [0.5] * 100},
}


@pytest.mark.parametrize("sentence", WRONG)
def test_invalid_setting_is_reported_in_one_sentence(sentence):
    with pytest.raises(EgmError) as caught:
        GuidanceSettings(**WRONG[sentence])
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200
