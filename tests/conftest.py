import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import twin
from tests.support import browser
from tests.support.shared_data import shared_folder
from tests.support.xwindow import xvfb
from twin.physics.robot.evaluation import uncompiled

pytest_plugins = ("tests.support.processor_times",)

os.environ["COLUMNS"] = "100"  # the width that is used without a terminal; pytest-xdist sets 80

NEEDED = {"display": ("Xvfb",), "locale": ("localedef",), "browser": browser.PROGRAMS}
"""Programs that the tests of each mark need; without any of them, the tests are deselected with a notice."""

DESELECTED = {
    mark: f"they need {' or '.join(programs)}, which is not installed"
    for mark, programs in NEEDED.items()
    if not any(map(shutil.which, programs))
}
"""Reason why the tests of a mark are deselected, by mark."""

if shared_folder() is None:
    DESELECTED["shared"] = "they need the measured data in ../shared/data, which does not exist"

FIRST = (
    "test_scenarios", "test_fuzz", "test_jit", "test_wheel_project", "test_docs_build",
    "test_model_check", "test_symbolic",
)  # fmt: skip
"""Modules that run first, in this order.

The first module compiles the functions that most other modules need.  The modules after it take as long but
need few of these functions, so a second worker does not compile the same functions at the same time.
"""

SHARING = ("test_scenarios", "test_scenario_runs", "test_drive_scenarios", "test_verdicts")
"""Modules that share scenario runs, which one process caches with `scenario_cases.full_run`."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Return one process more than there are cores.

    The tests of windows and network connections spend a third of their time waiting.
    """
    return os.cpu_count() + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        """Scheduler that runs each module in one process, and all modules of `SHARING` in the same."""

        def _split_scope(self, nodeid):
            module = super()._split_scope(nodeid)
            return SHARING[0] if Path(module).stem in SHARING else module

    return Scheduling(config, log)


@pytest.fixture(autouse=True)
def module_path():
    """Restore `sys.path` after a test.

    Loading a user's file appends its folder, in which a later test would find a module of the same name.
    """
    before = sys.path[:]
    yield
    sys.path[:] = before


@pytest.fixture(scope="session")
def irb140():
    return twin.load("irb140")


@pytest.fixture(scope="session")
def robot(irb140):
    """Robot for a test that does not depend on the choice of robot."""
    return irb140


@pytest.fixture(scope="session")
def irb1400():
    return twin.load("irb1400")


@pytest.fixture(scope="session")
def irb1600():
    return twin.load("irb1600")


@pytest.fixture(scope="session", params=["irb140", "irb1400", "irb1600"])
def arm(request):
    """Each ABB robot in turn, for properties that all of them share."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def display():
    """Name of a new X server that only the tests of one module use."""
    with xvfb() as name:
        yield name


@pytest.fixture
def load(tmp_path):
    """Function that loads a robot from URDF text; its functions run as plain Python, without compilation."""

    def from_text(text, name="robot.urdf"):
        path = tmp_path / name
        path.write_text(text)
        return uncompiled(twin.load(path))

    return from_text


@pytest.fixture
def rng():
    return np.random.default_rng(140)


@pytest.fixture
def small_pictures(monkeypatch):
    """Draw the pictures of the arm at a low resolution, in a tenth of the time."""
    from scenarios.report import files

    monkeypatch.setattr(files, "PICTURE", (350, 350))


def pytest_collection_modifyitems(config, items):
    deselected = [item for item in items if any(item.get_closest_marker(mark) for mark in DESELECTED)]
    items[:] = sorted((item for item in items if item not in deselected), key=rank)
    config.hook.pytest_deselected(items=deselected)


def rank(item):
    """Return the rank of a test's module in `FIRST`; all other modules rank last, in their given order."""
    return FIRST.index(item.path.stem) if item.path.stem in FIRST else len(FIRST)


def pytest_terminal_summary(terminalreporter):
    for mark, reason in DESELECTED.items():
        terminalreporter.write_line(f"tests marked {mark!r} were not run: {reason}")
