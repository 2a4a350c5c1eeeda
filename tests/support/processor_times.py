"""`pytest --quick`: run only the tests that took little processor time in their last run.

Every run stores the processor time of each test in pytest's cache; `--quick` deselects tests above `MOST`.
The processes that a test starts count too.  A test without a stored time is run, so the first `--quick` in a
new checkout runs everything.
"""

import functools
import resource

import pytest

MOST = 0.05
"""Largest processor time of a quick test, in [s]."""

FIXTURES = pytest.StashKey[dict[str, float]]()

_shared = []
"""Processor times of the shared results that the running test has used, in [s]."""


def processor_time():
    """Return the processor time of this process and of its finished children, in [s]."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


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


def pytest_addoption(parser):
    help_ = f"run only tests that took at most {MOST} s of processor time in their last run"
    parser.addoption("--quick", action="store_true", help=help_)


def pytest_configure(config):
    if config.pluginmanager.hasplugin("cacheprovider"):  # not so with `-p no:cacheprovider`
        config.pluginmanager.register(Times(config))


class Times:
    """Processor times of the tests: stored times of earlier runs, and times of this run.

    A quick run does not replace stored times.  The first test in a process loads machine code for all others,
    and this time must not count for that test.
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
    """Add the processor time of the test and of its module's fixtures to the report.

    A module's fixture counts for each test that uses it.  Fixtures of the session, such as robots, do not.
    """
    report = yield
    if call.when == "call":
        costs = [node.stash.get(FIXTURES, {}) for node in item.listchain()[1:]]
        report.processor_time = sum(
            cost.get(name, 0.0) for cost in costs for name in ("", *item.fixturenames)
        )
    return report
