"""Inverse kinematics of one pose and of many: the same bits; and the ranges of passive joints."""

import numpy as np

from scenarios.checks.motion_range import beyond_passive_range
from tests.support.dh_arms import distance_mod_turn, random_poses_of
from twin.kinematics.forward import forward_kinematics
from twin.kinematics.inverse import inverse_kinematics


def test_many_poses_are_solved_as_one_by_one(arm, monkeypatch):
    """Regular and singular, more of them than are solved at a time, on one thread or on several."""
    rng = np.random.default_rng(14)
    q, T = random_poses_of(arm, rng, 12_000)
    q[::3, 4] = 0.0
    T[::3] = forward_kinematics(arm, q[::3])
    monkeypatch.setenv("IRB_TWIN_THREADS", "3")
    rows, nearest = inverse_kinematics(arm, T), inverse_kinematics(arm, T, near=q)
    kept = np.abs(nearest[::3, 3] - q[::3, 3]) <= 1e-15  # but where another solution is nearer
    assert np.mean(kept) > 0.99
    monkeypatch.setenv("IRB_TWIN_THREADS", "1")
    assert inverse_kinematics(arm, T).tobytes() == rows.tobytes()
    assert inverse_kinematics(arm, T, near=q).tobytes() == nearest.tobytes()
    for sample in rng.integers(0, len(T), 300):
        assert inverse_kinematics(arm, T[sample]).tobytes() == rows[sample].tobytes()
        assert inverse_kinematics(arm, T[sample], near=q[sample]).tobytes() == nearest[sample].tobytes()


def test_the_end_of_a_passive_joint_s_range(irb1400):
    q = np.tile(np.deg2rad([10.0, 40.0, -35.0, 20.0, 30.0, 10.0]), (4, 1))
    q[:, 1] = q[:, 2] - irb1400.passive_min[0] + np.array([-1e-9, 0.0, 1e-14, 1e-9])
    excess = beyond_passive_range(irb1400, q)
    assert excess[0] < 0 < excess[3]
    T = forward_kinematics(irb1400, q)
    found = np.nanmin(distance_mod_turn(inverse_kinematics(irb1400, T, limits=False), q), axis=1)
    assert np.max(found) < 1e-12
    kept = ~np.isnan(inverse_kinematics(irb1400, T, near=q)[:, 0])
    rows = inverse_kinematics(irb1400, T)
    nearest = [np.nanmin(distance_mod_turn(rows[i : i + 1], q[i : i + 1]), initial=9.0) for i in range(4)]
    assert kept[:3].all()
    assert [bool(distance < 1e-8) for distance in nearest] == [True, True, True, False]
