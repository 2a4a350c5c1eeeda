"""The columns of a log: their names, their units, and that none is missing."""

from dataclasses import replace

import numpy as np

from tests.support.example_logs import N, irb140_log, log_of, sliding_log
from twin.logs.columns import QUANTITIES, columns
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


def test_a_joint_that_slides_is_in_metres_and_newtons():
    found = names(sliding_log())
    for name in ("q_m", "q_ref_m", "error_m", "qd_m_s", "qdd_ref_m_s2", "tau_N", "tau_demand_N"):
        assert f"joint_2_{name}" in found
    assert {"joint_1_q_rad", "joint_1_tau_Nm", "joint_3_qd_rad_s"} <= set(found)


def test_every_array_of_joints_has_its_columns_and_no_name_is_there_twice():
    log = irb140_log()
    other = {name: getattr(log, name) + 1.0 for name in STANDS_FOR}
    assert {*JOINTS, "saturated", "error"} == set(QUANTITIES)
    assert not [name for name in names(log) for array in STANDS_FOR if array in name]  # one stands for both
    found = names(replace(log, **other))
    assert len(set(found)) == len(found) == 1 + 6 * len(QUANTITIES) + 15
    assert {"joint_1_tau_joint_Nm", "joint_1_q_motor_rad", "joint_1_qd_seen_rad_s"} <= set(found)


def test_the_gap_of_a_closed_loop_is_there_where_there_is_one(irb1400):
    assert "loop_gap_m" in names(log_of(irb1400))
    assert "loop_gap_m" not in names(irb140_log())


def test_what_a_scenario_adds_for_every_sample_is_a_column():
    force = np.arange(3.0 * N).reshape(N, 3)
    own = {"force": force, "step": np.arange(N), "gain": np.array(3.0), "words": np.array(["a"] * N)}
    found = {column.name: column.values for column in columns(replace(irb140_log(), arrays=own))}
    assert [name for name in found if name.startswith("own")] == [
        "own_force_1", "own_force_2", "own_force_3", "own_step",
    ]  # fmt: skip
    np.testing.assert_array_equal(found["own_force_2"], force[:, 1])
