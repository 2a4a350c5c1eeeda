"""`pytest --quick`: the tests that took little time of the processor when they last ran.

Every run notes in pytest's cache what each test took; `--quick` leaves out those above `MOST`.  The processes
that a test begins count as well, so windows, commands and pages of the docs are left out without a list.  A
test of which no time is known is run: the first `--quick` in a new checkout runs everything.
"""

import functools
import resource

import pytest

MOST = 0.05
"""The longest quick test, in [s]."""

FIXTURES = pytest.StashKey[dict[str, float]]()

_shared = []
"""What the shared results that the running test asked for took, in [s]."""


def processor_time():
    """Time of this process and of those that it began and waited for, in [s]."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def shared(function):
    """Cache a function for all tests of a process; each test that calls it is charged its time."""
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


def pytest_addoption(parser):
    help_ = f"run only tests that took at most {MOST} s of processor when they last ran"
    parser.addoption("--quick", action="store_true", help=help_)


def pytest_configure(config):
    if config.pluginmanager.hasplugin("cacheprovider"):  # not so with `-p no:cacheprovider`
        config.pluginmanager.register(Times(config))


class Times:
    """The times of the tests: what is known of them from before, and what this run finds.

    A quick run keeps what is known: the test that happens to come first in a process loads machine code for
    all others, which is not its own time.
    """

    def __init__(self, config):
        self.known = config.cache.get("processor_times", {})
        self.found = {}
        self.quick = config.option.quick

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config, items):
        if self.quick:
            slow = [item for item in items if self.known.get(item.nodeid, 0.0) > MOST]
            items[:] = [item for item in items if self.known.get(item.nodeid, 0.0) <= MOST]
            config.hook.pytest_deselected(items=slow)

    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            self.found[report.nodeid] = report.processor_time

    def pytest_sessionfinish(self, session):
        if not hasattr(session.config, "workerinput"):
            times = self.found | self.known if self.quick else self.known | self.found
            session.config.cache.set("processor_times", times)


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
    """Add to the report what the test took, with what its module made for it, whichever test came first.

    What the whole session shares, such as a robot, is nobody's.
    """
    report = yield
    if call.when == "call":
        costs = [node.stash.get(FIXTURES, {}) for node in item.listchain()[1:]]
        report.processor_time = sum(
            cost.get(name, 0.0) for cost in costs for name in ("", *item.fixturenames)
        )
    return report
