"""Virtual controllers of the tests in this folder."""

import pytest

import twin
from tests.support.virtual_cell import VirtualCell, source, tasks_of_folder


@pytest.fixture(scope="module")
def abb_robot():
    return twin.load("irb140").with_drives("rigid")


@pytest.fixture
def cell(abb_robot, tmp_path):
    """Return a function that starts a controller with the bodies of tasks by their names."""
    made = []

    def start(more="", options=None, **bodies):
        for name, body in bodies.items():
            (tmp_path / f"{name}.mod").write_text(source(body, more))
        made.append(VirtualCell(abb_robot, tasks_of_folder(tmp_path), **options or {}))
        return made[-1]

    yield start
    for one in made:
        one.__exit__()
