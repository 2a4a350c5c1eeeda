"""Envelopes have published radii, and maps of a plane agree with single poses."""

import numpy as np
import pytest

import twin
from twin.physics.trajectories.joint_paths import singular_distances
from twin.studies.cell import Clearance, envelope, plane_map

ROBOT = twin.load("irb140")


def test_the_envelope_of_the_irb_140_has_published_radii():
    found = envelope(ROBOT)
    assert found.front == pytest.approx(ROBOT.rating.reach, abs=1e-4)
    assert found.rear == pytest.approx(0.670, abs=1e-4)
    assert found.top == pytest.approx(1.092, abs=1e-4)


def test_a_map_agrees_with_single_poses(tmp_path):
    path = tmp_path / "cell.toml"
    path.write_text(
        "[objects.post]\ncylinder = 0.05\nfrom = [0.6, 0.1, 0]\nto = [0.6, 0.1, 1.5]\n", encoding="utf-8"
    )
    clearance = Clearance(ROBOT, twin.load_cell(path))
    T = twin.pose_matrix([0.45, 0, 0.35, np.cos(0.1), 0, np.sin(0.1), 0])
    x, y = np.linspace(-0.4, 0.4, 5), np.linspace(-0.3, 0.3, 4)
    found = plane_map(ROBOT, T, x, y, clearance=clearance)
    assert found.solutions.shape == (4, 5)
    assert 0.2 < found.share < 1.0
    for i, j in ((0, 0), (1, 2), (3, 4)):
        pose = T @ twin.pose_matrix([x[j], y[i], 0, 0, 1, 0, 0])
        q = twin.inverse_kinematics(ROBOT, pose)
        q = q[np.isfinite(q).all(axis=1)]
        assert found.solutions[i, j] == len(q)
        if len(q):
            measures = twin.kinematics.manipulability_measure(ROBOT, q)
            assert found.manipulability[i, j] == pytest.approx(measures.max())
            best = q[np.round(measures, 9).argmax()]
            left = 1 - np.abs(twin.gravity_torque(ROBOT, best) / ROBOT.tau_max).max()
            assert found.torque_margin[i, j] == pytest.approx(left)
            singular = np.abs(singular_distances(ROBOT, best[None], np.zeros((1, 6)))[0])
            assert found.singular[i, j] == pytest.approx(singular.min())
            assert found.clearance[i, j] == pytest.approx(clearance.nearest(best).clearance, abs=1e-7)
        else:
            assert np.isnan(found.manipulability[i, j])
