"""Processor times of test files and of the processes that they start; a run of all tests prints the most."""

import functools
import os
import resource
from collections import defaultdict
from pathlib import Path

import pytest

from twin.base import worker_processes

SHOWN = 10
"""Number of expensive files that a run prints."""

forked: list[float] = []
"""Processor times of ended processes that a fork server of the tests has started, in [s]."""

shared = functools.cache


def processor_time():
    """Return the processor time of this process, of its finished children and of its fork servers, in [s]."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    served = sum(map(of_server, worker_processes._servers)) + sum(forked)
    return served + sum(usage.ru_utime + usage.ru_stime for usage in usages)


def of_server(server):
    """Return the processor time of a fork server and of the ended processes that it forked, in [s]."""
    status = Path(f"/proc/{server.process.pid}/stat").read_text(encoding="ascii")
    return sum(map(int, status.rpartition(")")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="leave out the tests that are marked `slow`")


def pytest_configure(config):
    config.pluginmanager.register(Times(config))


class Times:
    """Processor times of the test files of a run.

    The first test in a process loads machine code for all others, which counts for its file.
    """

    def __init__(self, config):
        self.config = config
        self.files = defaultdict(float)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config, items):
        if config.option.quick:
            slow = [item for item in items if item.get_closest_marker("slow")]
            items[:] = [item for item in items if item not in slow]
            config.hook.pytest_deselected(items=slow)

    def pytest_runtest_logreport(self, report):
        if hasattr(report, "spent"):
            self.files[report.nodeid.partition("::")[0]] += report.spent

    def pytest_sessionfinish(self):
        worker_processes.close_servers()

    def pytest_terminal_summary(self, terminalreporter):
        if self.config.option.quick or self.config.option.file_or_dir:
            return
        terminalreporter.section(f"the {SHOWN} files with the most processor time")
        for name, time in sorted(self.files.items(), key=lambda item: -item[1])[:SHOWN]:
            terminalreporter.write_line(f"{time:8.1f} s  {name}")
        total, count = sum(self.files.values()), len(self.files)
        terminalreporter.write_line(f"{total:8.1f} s  in all {count} files, without starting and collecting")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    item.began = processor_time()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Add the processor time of the test, with the fixtures that it made, to the report of its end."""
    report = yield
    if call.when == "teardown":
        report.spent = processor_time() - item.began
    return report
