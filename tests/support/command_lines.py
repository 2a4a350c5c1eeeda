"""Commands of `irb-twin` as processes, and as text that is parsed again."""

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time

from scenarios.cli.command_line import read
from scenarios.cli.output import COMPILING
from scenarios.cli.settings import configs_of
from scenarios.running import registry
from scenarios.running.execute import SLOW
from twin import fork_server

WORDS = "IRB_TWIN_TEST_WORDS"
"""Environment variable with the words of a forked command."""

COMMAND = [sys.executable, "-c", "import sys; from scenarios.cli.process import main; sys.exit(main())"]

"""A command in a new interpreter, which takes a second; `command` forks one in some milliseconds."""


def command(*words, cwd=None, **environment):
    """Run `irb-twin` with these words as a forked process, and return it with its output as text."""
    with started(*words, cwd=cwd, **environment) as process:
        return process.ended()


def started(*words, cwd=None, **environment):
    """Start `irb-twin` with these words as a forked process."""
    before = os.getcwd()
    os.chdir(cwd or before)
    errors = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        variables = os.environ | environment | {WORDS: json.dumps(list(map(str, words)))}
        process = fork_server.fork(
            f"{__name__}:run_words", SLOW, environment=variables, stderr=errors.fileno()
        )
    finally:
        os.chdir(before)
    process.stdin.close()
    return Started(process, errors)


class Started:
    """Command that runs as a forked process; a `with` block kills it at its end."""

    def __init__(self, process, errors):
        self.process, self.errors, self.pid = process, errors, process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
            self.process.wait(10.0)
        self.process.stdout.close()
        self.errors.close()

    def ended(self, longest=60.0):
        """Wait for the end of the process, and return it with its output as text."""
        output = self.process.stdout.read().decode()
        status = self.process.wait(longest)
        self.errors.seek(0)
        return subprocess.CompletedProcess((), status, output, self.errors.read().decode())


def run_words():
    """Run the command line of a forked process."""
    from scenarios.cli.process import main

    sys.argv = ["irb-twin", *json.loads(os.environ.pop(WORDS))]
    return main()


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
    """Return the scenario that a command names, and the one configuration that it makes."""
    words = shlex.split(command)
    assert words[:2] == ["irb-twin", "run"]
    scenario = registry.find(words[2])
    given, call = read(words[1:])
    assert given.scenarios == (words[2],)
    (config,) = configs_of(call.settings, scenario.Config, given.controller, given.laws, given.changes)
    return scenario, config
