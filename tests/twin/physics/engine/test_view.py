"""Pictures: the camera's geometry, and cylinders that are as large as they are."""

import numpy as np
import pytest

import twin
from twin.physics.engine.simulation import Simulation

BALL = """<robot name="ball"><link name="base"/>
<link name="tip"><inertial><mass value="1"/>
  <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
  <visual><origin xyz="0.3 0.2 0.5"/><geometry>{shape}</geometry>
    <material name="dark"><color rgba="0.1 0.1 0.1 1"/></material></visual></link>
<joint name="turn" type="continuous"><parent link="base"/><child link="tip"/><axis xyz="0 0 1"/></joint>
</robot>"""
CAMERA = {"target": (0.1, 0.1, 0.4), "distance": 1.5, "yaw_deg": 35.0, "pitch_deg": -25.0}


def seen(tmp_path, shape: str) -> tuple[np.ndarray, Simulation]:
    """The mask of the pixels that the shape covers, and the simulation."""
    path = tmp_path / "ball.urdf"
    path.write_text(BALL.format(shape=shape))
    simulation = Simulation(twin.load(path))
    return (simulation.picture(400, 300, **CAMERA) < 255).any(axis=2), simulation


def test_pixels_are_where_the_picture_shows_them(tmp_path):
    mask, simulation = seen(tmp_path, '<sphere radius="0.03"/>')
    with simulation:
        row, column = np.argwhere(mask).mean(axis=0)
        expected = simulation.pixels([0.3, 0.2, 0.5], 400, 300, **CAMERA)
        assert np.hypot(*(expected - (column, row))) < 0.2
        assert simulation.pixels(np.zeros((2, 3, 3)), 400, 300, **CAMERA).shape == (2, 3, 2)


def test_a_cylinder_is_drawn_as_large_as_it_is(tmp_path):
    """A silhouette along the axis is a disc; the hull that PyBullet makes lacks some of the area."""
    path = tmp_path / "disc.urdf"
    path.write_text(BALL.format(shape='<cylinder radius="0.2" length="0.1"/>'))
    camera = {"target": (0.3, 0.2, 0.5), "distance": 2.0, "yaw_deg": 0.0, "pitch_deg": -90.0}
    with Simulation(twin.load(path)) as simulation:
        area = (simulation.picture(600, 600, **camera) < 255).any(axis=2).sum()
        edge = simulation.pixels([0.5, 0.2, 0.55], 600, 600, **camera)
        centre = simulation.pixels([0.3, 0.2, 0.55], 600, 600, **camera)
    radius = np.linalg.norm(edge - centre)
    assert area == pytest.approx(np.pi * radius**2, rel=0.01)
