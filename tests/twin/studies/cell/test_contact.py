"""Objects of a cell that the tool touches."""

import numpy as np
import pytest
from twin.dynamics import surface

import twin
from scenarios.setup import Setup
from twin.base.errors import CellError
from twin.studies.cell.contact import touched_surfaces

CELL = """
[base]
at = [0.1, 0.2, 0.3]
rpy_deg = [0, 0, 90]

[frames.bench]
at = [1.0, 0.0, 0.5]
rpy_deg = [0, 0, 180]

[objects.table]
box = [0.4, 0.6, 0.1]
at = [0.2, 0.0, 0.0]
frame = "bench"
stiffness = 2e4
damping = 100
friction = 0.3

[objects.post]
shapes = [{ cylinder = 0.05, from = [1, 1, 0], to = [1, 1, 1] }, { sphere = 0.1, at = [1, 1, 1] }]
stiffness = 1e4

[objects.air]
box = [0.1, 0.1, 0.1]
at = [3, 3, 3]
"""


def test_bodies_with_a_stiffness_are_surfaces_in_the_base_frame(tmp_path):
    file = tmp_path / "cell.toml"
    file.write_text(CELL)
    cell = twin.load_cell(file)
    rows = touched_surfaces(cell, tip=0.02)
    assert len(rows) == 3
    # The table's centre is at (0.8, 0, 0.5) in the world: (-0.2, -0.7, 0.2) in the base, a quarter turn on.
    np.testing.assert_allclose(rows[0][15:18], [-0.2, -0.7, 0.2], atol=1e-15)
    np.testing.assert_allclose(rows[0][1:6], [2e4, 100, 0.3, 0.01, 0.02])
    ball = surface("sphere=0.1 at=0.8,-0.9,0.7 stiffness=1e4 tip=0.02")
    np.testing.assert_allclose(
        rows[2][[*range(6), *range(15, 21)]], ball[[*range(6), *range(15, 21)]], atol=1e-15
    )
    setup = Setup(surface=f"{file}; plane=0,0,1 stiffness=1e3")
    np.testing.assert_array_equal(setup.environment.surfaces[:3], touched_surfaces(cell))
    assert not setup.environment.surfaces[:, 5].any()  # a point touches them, no ball


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[objects.a]\nbox = [1, 1, 1]\n", "expected an object with a stiffness, which the tool can touch"),
        (
            "[objects.a]\nbox = [1, 1, 1]\nfriction = 0.2\n",
            "lacks the key 'stiffness'",
        ),
        ("[objects.a]\nbox = [1, 1, 1]\nstiffness = -5\n", r"objects.a.stiffness: expected a number above 0"),
    ],
)
def test_cell_that_cannot_be_touched_is_refused(content, message, tmp_path):
    file = tmp_path / "cell.toml"
    file.write_text(content)
    with pytest.raises(CellError, match=message):
        touched_surfaces(twin.load_cell(file))


def test_mesh_is_refused(tmp_path):
    (tmp_path / "a.stl").write_text("solid a\nendsolid a\n")
    file = tmp_path / "cell.toml"
    file.write_text('[objects.a]\nmesh = "a.stl"\nunit = "m"\nstiffness = 1e4\n')
    with pytest.raises(CellError, match=r"objects.a: a mesh cannot be touched"):
        touched_surfaces(twin.load_cell(file))
