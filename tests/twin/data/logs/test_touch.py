"""Surfaces and forces of a run in pictures: meshes of the bodies, arrows, film and replay."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from twin.dynamics import Environment, surface

import controllers
import twin
from twin.physics.dynamics.environment import signed_distance
from twin.studies.views.browser import Replay
from twin.studies.views.film import film
from twin.studies.views.touch import LONGEST, arrows, surface_meshes

Q = np.array([0.3, 0.4, -0.2, 0.5, 0.7, -0.4])
ROBOT = twin.load("irb140").with_drives("rigid")
X, Y, Z = twin.forward_kinematics(ROBOT, Q)[:3, 3]
BODIES = (
    f"plane=0.1,0,1 at={X},{Y},{Z}", f"box=0.2,0.3,0.1 at={X},{Y},{Z} rpy_deg=10,20,30",
    f"sphere=0.1 at={X},{Y},{Z}", f"cylinder=0.05 from={X},{Y},{Z} to={X},{Y + 0.3},{Z + 0.1}",
)  # fmt: skip


@pytest.fixture(scope="module")
def touched():
    row = surface(f"plane=0,0,1 at={X},{Y},{Z - 0.005} stiffness=2e4 damping=100")
    path = twin.sample(twin.quintic(Q, Q + np.array([0, 0.1, 0, 0, 0, 0]), 0.3), 1e-3)
    law = controllers.make("pd_gravity", ROBOT)
    log = twin.run_closed_loop(twin.AnalyticPlant(ROBOT), law, path, environment=Environment((), [row]))
    assert log.wrench[:, 2].max() > 5
    return log


def test_vertices_of_each_mesh_are_on_its_surface(touched):
    rows = [surface(f"{text} stiffness=1e4") for text in BODIES]
    seen = replace(touched, surroundings=replace(touched.surroundings, surfaces=np.array(rows)))
    for row, (vertices, faces) in zip(rows, surface_meshes(seen), strict=True):
        assert len(faces) > 8
        for p in vertices:
            assert signed_distance(row, np.array(p), np.empty(3)) == pytest.approx(0.0, abs=2e-4)


def test_arrows_start_at_the_tool_and_the_longest_is_that_of_the_largest_force(touched):
    found = arrows(touched)
    np.testing.assert_array_equal(found[:, 0], touched.pose[:, :3])
    lengths = np.linalg.norm(found[:, 1] - found[:, 0], axis=1)
    forces = np.linalg.norm(touched.wrench[:, :3], axis=1)
    np.testing.assert_allclose(lengths, LONGEST * forces / forces.max(), atol=1e-15)
    assert len(arrows(replace(touched, surroundings=None))) == 0
    assert surface_meshes(replace(touched, surroundings=None)) == []


def test_film_and_replay_show_force_and_surface(touched, tmp_path):
    free = replace(touched, surroundings=None)
    pictures = []
    for log in (touched, free):
        film(log, tmp_path / "run.gif", fps=5, size=(240, 200))
        with Image.open(tmp_path / "run.gif") as image:
            image.seek(image.n_frames - 1)
            pictures.append(np.asarray(image.convert("RGB"), dtype=int))
    assert np.count_nonzero(np.abs(pictures[0] - pictures[1]).max(axis=2) > 30) > 200
    pages = [len(Replay.of({"run": log}, frames=10).html) for log in (touched, free)]
    assert pages[0] > pages[1]
