"""Scripts in processes of their own that begin with their modules loaded: forks of a server.

A new process takes seconds to import the twin and to load its compiled functions, a fork a few milliseconds.
"""

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
from functools import cache
from pathlib import Path
from types import SimpleNamespace

from tests.support import processor_times

SERVER = """
import json, os, sys
exec(sys.argv[1])
for line in sys.stdin:
    job = json.loads(line)
    if (pid := os.fork()) == 0:
        break
    print(pid, flush=True)
    _, status, used = os.wait4(pid, 0)
    print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, flush=True)
else:
    sys.exit()
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
for stream, name in ((1, "stdout"), (2, "stderr")):
    os.dup2(os.open(os.path.join(job["folder"], name), os.O_WRONLY | os.O_CREAT), stream)
os.environ.clear()
os.environ.update(job["environment"])
exec(job["script"])
"""

NUMBA = """
import os, sys
os.environ["NUMBA_DISABLE_JIT"] = "0"
import numba, numpy
sys.dont_write_bytecode = True
numba.njit(lambda x: x)(1.0)  # loads what compiles
"""
"""Preamble of scripts that import the twin themselves, with environment and cache of their own."""


@cache
def server(preamble):
    """Return the process that runs `preamble` once, and scripts in forks of itself."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, preamble],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
    )  # fmt: skip

    @atexit.register
    def end():
        process.stdin.close()
        process.wait()
        process.stdout.close()

    return process


class Fork:
    """Script that runs in a fork; one at a time for each preamble.

    Args:
        script: the script; it knows the names of the preamble.
        preamble: script that the server has run before it forks.
        environment: variables that differ from this process; `None` removes one.
    """

    def __init__(self, script, preamble="", **environment):
        self._server, self._folder = server(preamble), tempfile.TemporaryDirectory()
        variables = {key: value for key, value in (os.environ | environment).items() if value is not None}
        job = {"script": textwrap.dedent(script), "folder": self._folder.name, "environment": variables}
        self._server.stdin.write(json.dumps(job).encode() + b"\n")
        self.pid = int(self._server.stdout.readline())
        self._ended = None

    def read(self, stream="stdout"):
        """Return what it has written so far."""
        path = Path(self._folder.name, stream)
        return path.read_text() if path.exists() else ""

    def running(self):
        return self._ended is None and not select.select([self._server.stdout], [], [], 0.0)[0]

    def kill(self):
        """End it at once, if it still runs."""
        if self.running():
            os.kill(self.pid, signal.SIGKILL)
            self.wait()

    def wait(self, seconds=180.0):
        """Wait for the end; return its exit status and what it has written."""
        if self._ended is not None:
            return self._ended
        late = not select.select([self._server.stdout], [], [], seconds)[0]
        if late:
            os.kill(self.pid, signal.SIGKILL)
        status, time = self._server.stdout.readline().split()
        processor_times.forked.append(float(time))
        out, error = self.read(), self.read("stderr")
        self._folder.cleanup()
        self._ended = SimpleNamespace(returncode=int(status), stdout=out, stderr=error)
        assert not late, f"it did not end within {seconds} s:\n{out}\n{error}"
        return self._ended
