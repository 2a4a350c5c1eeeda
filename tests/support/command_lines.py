"""Commands of `irb-twin` as processes, and as text that is parsed again."""

import shlex
import sys
import time

from scenarios.running import registry
from scenarios.shell.command_line import read
from scenarios.shell.output import COMPILING
from scenarios.shell.settings import tasks_of

COMMAND = [sys.executable, "-c", "import sys; from scenarios.shell.process import main; sys.exit(main())"]


def without_notice(error):
    """Return standard error without the lines on compiling, which depend on what the cache contains."""
    return error.replace(f"irb-twin: {COMPILING}\n", "")


def wait(reached, longest=60.0):
    """Wait until `reached()` is true, for at most `longest` seconds."""
    end = time.monotonic() + longest
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.001)


def parsed_back(command):
    """Return the task that a command names."""
    words = shlex.split(command)
    assert words[:2] == ["irb-twin", "run"]
    given, call = read(words[1:])
    assert given.scenarios == (words[2],)
    entry = registry.find(words[2])
    (task,) = tasks_of(call.settings, entry, given.controller, given.laws, given.changes)
    return task
