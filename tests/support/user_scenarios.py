"""Scenario files of a user, valid and invalid."""

import contextlib
import io
from textwrap import indent

from scenarios.shell.command_line import main

HEAD = '''"""Scenario file of a user."""

import twin
from scenarios import Metric, Scenario, TrackingScenario, option


'''
METRICS = """def metrics(self, run):
    return (Metric("length", len(run.log.t), "", None, "in samples"),)
"""
PARTS = {
    "options": "",
    "motion": "def motion(self, robot):\n    return twin.hold(robot.n * [0.0], 0.01)\n",
    "run": "",
    "metrics": METRICS,
}
"""Parts of the body of a valid class, without its indentation."""


def scenario(head="", base="TrackingScenario", doc="Scenario of a user.", **parts):
    """Return the text of a scenario file.

    `head` comes first, `base` is the class that its class inherits, and `parts` replace the valid parts of
    the body by name.
    """
    body = [f'"""{doc}"""\n' if doc else "", *(PARTS | parts).values()]
    return f"{head}{HEAD}class Own({base}):\n" + indent("\n".join(filter(None, body)), 4 * " ")


def write(path, head="", **parts):
    """Write a scenario file and its folder, and return its path as text."""
    return write_text(path, scenario(head, **parts))


def write_text(path, text):
    """Write a file and its folder, and return its path as text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def given(words):
    """Status, standard output and standard error of a command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(words)
    return status, out.getvalue(), err.getvalue()
