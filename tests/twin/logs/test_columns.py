"""The columns of a log: their names, their units, that none is missing; and curves in few points."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.support.example_logs import N, irb140_log, log_of, sliding_log
from twin.logs.columns import QUANTITIES, columns, thinned
from twin.logs.log import JOINTS, STANDS_FOR


def names(log):
    return [column.name for column in columns(log)]


def test_a_column_is_called_after_joint_quantity_and_unit():
    log = irb140_log()
    found = {column.name: column for column in columns(log)}
    for name, label, values in (
        ("t_s", "t [s]", log.t),
        ("joint_2_q_rad", "joint_2 q [rad]", log.q[:, 1]),
        ("joint_2_q_ref_rad", "joint_2 q_ref [rad]", log.q_ref[:, 1]),
        ("joint_2_error_rad", "joint_2 error [rad]", log.q_ref[:, 1] - log.q[:, 1]),
        ("joint_3_qd_rad_s", "joint_3 qd [rad/s]", log.qd[:, 2]),
        ("joint_3_qdd_ref_rad_s2", "joint_3 qdd_ref [rad/s^2]", log.qdd_ref[:, 2]),
        ("joint_6_tau_Nm", "joint_6 tau [N m]", log.tau[:, 5]),
        ("joint_6_tau_demand_Nm", "joint_6 tau_demand [N m]", log.tau_demand[:, 5]),
        ("joint_2_saturated", "joint_2 saturated", log.saturated[:, 1]),
        ("tool_z_m", "tool z [m]", log.pose[:, 2]),
        ("tool_d_ref", "tool d_ref", log.pose_ref[:, 6]),
        ("tool_error_m", "tool error [m]", np.linalg.norm((log.pose - log.pose_ref)[:, :3], axis=1)),
    ):
        assert found[name].label == label
        np.testing.assert_array_equal(found[name].values, values)


def test_every_array_of_joints_has_its_columns_and_no_name_is_there_twice(irb1400):
    """The gap of a closed loop is there where there is one."""
    log = irb140_log()
    other = {name: getattr(log, name) + 1.0 for name in STANDS_FOR}
    assert {*JOINTS, "saturated", "error"} == set(QUANTITIES)
    assert not [name for name in names(log) for array in STANDS_FOR if array in name]  # one stands for both
    found = names(replace(log, **other))
    assert len(set(found)) == len(found) == 1 + 6 * len(QUANTITIES) + 15
    assert {"joint_1_tau_joint_Nm", "joint_1_q_motor_rad", "joint_1_qd_seen_rad_s"} <= set(found)
    sliding = names(sliding_log())  # in metres and newtons
    for name in ("q_m", "q_ref_m", "error_m", "qd_m_s", "qdd_ref_m_s2", "tau_N", "tau_demand_N"):
        assert f"joint_2_{name}" in sliding
    assert {"joint_1_q_rad", "joint_1_tau_Nm", "joint_3_qd_rad_s"} <= set(sliding)
    assert "loop_gap_m" in names(log_of(irb1400))
    assert "loop_gap_m" not in found


def test_what_a_scenario_adds_for_every_sample_is_a_column():
    force = np.arange(3.0 * N).reshape(N, 3)
    own = {"force": force, "step": np.arange(N), "gain": np.array(3.0), "words": np.array(["a"] * N)}
    found = {column.name: column.values for column in columns(replace(irb140_log(), arrays=own))}
    assert [name for name in found if name.startswith("own")] == [
        "own_force_1", "own_force_2", "own_force_3", "own_step",
    ]  # fmt: skip
    np.testing.assert_array_equal(found["own_force_2"], force[:, 1])


SERIES = arrays(np.float64, st.integers(0, 300), elements=st.floats(allow_nan=True, width=16))


@settings(max_examples=80)
@given(SERIES, st.integers(5, 60))
def test_thinning_preserves_the_extremes_of_every_part(series, most):
    """Whatever sample is left out, near it on either side there are one at least as low and one as high."""
    kept, N = thinned(series, most), len(series)
    assert len(kept) <= most
    assert np.all(np.diff(kept) > 0)
    assert {0, N - 1} <= {*kept} or N == 0
    near = -(-N // ((most - 2) // 3))  # samples: the length of a part
    for k in np.setdiff1d(np.arange(N), kept):
        around = series[kept[np.abs(kept - k) < near]]
        assert np.isnan(series[k]) or (np.nanmin(around) <= series[k] <= np.nanmax(around))
        assert not np.isnan(series[k]) or np.isnan(around).any()


def test_a_spike_of_one_sample_is_there_and_few_samples_stay_as_they_are():
    series = np.sin(np.linspace(0, 9, 600_000))
    series[123_456] = 50.0
    assert 123_456 in thinned(series, 1000)
    assert thinned(np.arange(7.0), 7).tolist() == list(range(7))


@pytest.mark.parametrize(
    ("series", "most"), [(np.zeros((3, 2)), 10), (np.zeros(3), 4), (np.zeros(3), np.nan)]
)
def test_what_cannot_be_thinned_is_refused(series, most):
    with pytest.raises(ValueError, match=r"shape \(N,\) and at least 5 points"):
        thinned(series, most)
