import shutil

import pytest

import twin

NO_SERVER = "tests marked 'display' are left out: they need Xvfb, which is not installed"


@pytest.fixture(scope="session")
def irb140():
    return twin.load("irb140")


def pytest_collection_modifyitems(config, items):
    if shutil.which("Xvfb"):
        return
    wanting = [item for item in items if item.get_closest_marker("display")]
    items[:] = [item for item in items if item not in wanting]
    config.hook.pytest_deselected(items=wanting)


def pytest_terminal_summary(terminalreporter):
    if not shutil.which("Xvfb"):
        terminalreporter.write_line(NO_SERVER)
