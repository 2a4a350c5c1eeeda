import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import twin
from tests.support import browser
from tests.support.random_trees import interpreted
from tests.support.shared_data import shared_folder
from tests.support.xwindow import xvfb

pytest_plugins = ("tests.support.processor_times",)

os.environ["COLUMNS"] = "100"  # as where the output is not a terminal; pytest-xdist sets 80

NEEDED = {
    "display": ("Xvfb",),
    "valgrind": ("valgrind",),
    "locale": ("localedef",),
    "browser": browser.PROGRAMS,
}
"""The programs without any of which tests of that mark are left out, which is said."""

LEFT_OUT = {
    mark: f"they need {' or '.join(programs)}, which is not installed"
    for mark, programs in NEEDED.items()
    if not any(map(shutil.which, programs))
}
"""Why tests of a mark are left out."""

if shared_folder() is None:
    LEFT_OUT["shared"] = "they need measured data in ../shared/data, which is not there"

FIRST = (
    "test_scenarios",
    "test_fuzz",
    "test_damaged_kernels",
    "test_wheel_project",
    "test_docs_build",
    "test_model_check",
    "test_symbolic_trees",
    "test_symbolic",
)
"""Modules to begin with, in this order.  The first compiles what most of the others need; those after it need
little of that, and take as long: so a second worker does not compile the same functions at the same time."""

SHARING = ("test_scenarios", "test_drive_scenarios", "test_drive_check", "test_verdicts")
"""Modules that ask for the same runs of scenarios, which one process keeps: `scenario_cases.full_run`."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """One process more than there are cores: tests of windows and of wires wait for a third of their time."""
    return os.cpu_count() + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        """A module to a process, and those that share runs to one."""

        def _split_scope(self, nodeid):
            module = super()._split_scope(nodeid)
            return SHARING[0] if Path(module).stem in SHARING else module

    return Scheduling(config, log)


@pytest.fixture(scope="session")
def irb140():
    return twin.load("irb140")


@pytest.fixture(scope="session")
def robot(irb140):
    """The robot of a test that would be the same for another one."""
    return irb140


@pytest.fixture(scope="session")
def irb1400():
    return twin.load("irb1400")


@pytest.fixture(scope="session")
def irb1600():
    return twin.load("irb1600")


@pytest.fixture(scope="session", params=["irb140", "irb1400", "irb1600"])
def arm(request):
    """Each of the robots, for what holds of them all."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def display():
    """The name of an X server of the test's own."""
    with xvfb() as name:
        yield name


@pytest.fixture
def load(tmp_path):
    """Load a robot from URDF text; its kernels run as plain Python, not compiled for so little."""

    def from_text(text, name="robot.urdf"):
        path = tmp_path / name
        path.write_text(text)
        return interpreted(twin.load(path))

    return from_text


@pytest.fixture
def rng():
    return np.random.default_rng(140)


@pytest.fixture
def small_pictures(monkeypatch):
    """Where nobody looks at the arm in a picture it is drawn in few pixels, in a tenth of the time."""
    from scenarios.report import picture

    monkeypatch.setattr(picture, "PICTURE", (350, 350))


def pytest_collection_modifyitems(config, items):
    wanting = [item for item in items if any(item.get_closest_marker(mark) for mark in LEFT_OUT)]
    items[:] = sorted((item for item in items if item not in wanting), key=place)
    config.hook.pytest_deselected(items=wanting)


def place(item):
    """The place of a test's module; the others keep the order of their names."""
    return FIRST.index(item.path.stem) if item.path.stem in FIRST else len(FIRST)


def pytest_terminal_summary(terminalreporter):
    for mark, why in LEFT_OUT.items():
        terminalreporter.write_line(f"tests marked {mark!r} are left out: {why}")
