"""Processor times of the tests: which files cost most, and which tests `pytest --quick` leaves out.

The processes that a test starts count too.  `tests/slow.txt` lists the slow tests, above `SLOW`.  A run of
all tests prints the most expensive files; with `--write-slow` it writes the list.
"""

import functools
import os
import resource
from collections import defaultdict
from pathlib import Path
from statistics import median

import pytest

from twin import fork_server

SLOW = 0.1
"""Least processor time of a slow test, in [s]; that of a function is the median of its cases."""

CERTAIN = 4.0
"""Factor of `SLOW` beyond which a test is in the wrong list, on any machine and under any load."""

SHOWN = 10
"""Number of expensive files that a run prints."""

LIST = Path(__file__).parents[1] / "slow.txt"

FIXTURES = pytest.StashKey[dict[str, float]]()

_shared = []
"""Processor times of the shared results that the running test has used, in [s]."""


def processor_time():
    """Return the processor time of this process, of its finished children and of its fork servers, in [s]."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    served = sum(map(of_server, fork_server._servers))
    return served + sum(usage.ru_utime + usage.ru_stime for usage in usages)


def of_server(server):
    """Return the processor time of a fork server and of the ended processes that it forked, in [s]."""
    status = Path(f"/proc/{server.process.pid}/stat").read_text(encoding="ascii")
    return sum(map(int, status.rpartition(")")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")


def shared(function):
    """Cache a function for all tests of a process; its processor time counts for each test that calls it."""
    timed = functools.cache(functools.partial(_timed, function))

    @functools.wraps(function)
    def result(*arguments, **named):
        value, time = timed(*arguments, **named)
        _shared.append(time)
        return value

    return result


def _timed(function, *arguments, **named):
    began = processor_time()
    return function(*arguments, **named), processor_time() - began


def function_of(nodeid):
    """Return the name of a test without its parameters."""
    return nodeid.partition("[")[0]


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help=f"leave out the tests of {LIST.name}")
    parser.addoption("--write-slow", action="store_true", help=f"write the slow tests to {LIST.name}")


def pytest_configure(config):
    config.pluginmanager.register(Times(config))


class Times:
    """Processor times of the tests of a run.

    The first test in a process loads machine code for all others, which counts for its file only.
    """

    def __init__(self, config):
        self.config = config
        self.listed = set(LIST.read_text(encoding="utf-8").split()) if LIST.exists() else set()
        self.cases, self.files = defaultdict(list), defaultdict(float)

    @property
    def tests(self):
        """Median processor time of the cases of each test function, in [s]."""
        return {name: median(times) for name, times in self.cases.items()}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config, items):
        if config.option.quick:
            slow = [item for item in items if function_of(item.nodeid) in self.listed]
            items[:] = [item for item in items if function_of(item.nodeid) not in self.listed]
            config.hook.pytest_deselected(items=slow)

    def pytest_runtest_logreport(self, report):
        if hasattr(report, "spent"):
            self.files[report.nodeid.partition("::")[0]] += report.spent
        if report.when == "call":
            self.cases[function_of(report.nodeid)].append(report.processor_time)

    def pytest_sessionfinish(self):
        fork_server.close()
        if self.config.option.write_slow and not hasattr(self.config, "workerinput"):
            slow = sorted(name for name, time in self.tests.items() if time > SLOW)
            LIST.write_text("".join(f"{name}\n" for name in slow), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter):
        if self.config.option.quick or self.config.option.file_or_dir:
            return
        terminalreporter.section(f"the {SHOWN} files with the most processor time")
        for name, time in sorted(self.files.items(), key=lambda item: -item[1])[:SHOWN]:
            terminalreporter.write_line(f"{time:8.1f} s  {name}")
        total, count = sum(self.files.values()), len(self.files)
        terminalreporter.write_line(f"{total:8.1f} s  in all {count} files, without starting and collecting")
        missing = {name for name, time in self.tests.items() if time > CERTAIN * SLOW} - self.listed
        needless = {name for name, time in self.tests.items() if time < SLOW / CERTAIN} & self.listed
        wrong = sorted(missing | needless | self.listed - self.tests.keys())
        if wrong:
            terminalreporter.write_line(f"{LIST.name} is outdated; --write-slow writes it: {' '.join(wrong)}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    item.began = processor_time()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    began = processor_time()
    try:
        return (yield)
    finally:
        costs = request.node.stash.setdefault(FIXTURES, {})
        costs[fixturedef.argname] = processor_time() - began


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    began = processor_time()
    _shared.clear()
    try:
        return (yield)
    finally:
        costs = item.stash.setdefault(FIXTURES, {})
        costs[""] = max(processor_time() - began, sum(_shared))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Add the processor time of the test and of its module's fixtures to the report.

    A module's fixture counts for each test that uses it.  Fixtures of the session, such as robots, do not.
    """
    report = yield
    if call.when == "call":
        costs = [node.stash.get(FIXTURES, {}) for node in item.listchain()[1:]]
        report.processor_time = sum(
            cost.get(name, 0.0) for cost in costs for name in ("", *item.fixturenames)
        )
    if call.when == "teardown":
        report.spent = processor_time() - item.began
    return report
