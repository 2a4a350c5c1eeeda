"""Scenario files of a user, valid and invalid."""

HEAD = '''"""Scenario of a user."""

from dataclasses import dataclass

from scenarios import base, gravity_hold
from scenarios.base import Metric, option

'''
PARTS = {
    "config": "@dataclass(frozen=True)\nclass Config(base.Config): ...\n",
    "run": "def run(config):\n    return gravity_hold.run(gravity_hold.Config(duration=0.01))\n",
    "metrics": 'def metrics(log):\n    return (Metric("length", len(log.t), "", None, "in samples"),)\n',
}


def scenario(head="", **parts):
    """Return the text of a scenario file; `head` comes first, and `parts` replace the valid parts by name."""
    return head + HEAD + "\n\n".join((PARTS | parts).values())


def write(path, head="", **parts):
    """Write a scenario file and its folder, and return its path as text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(scenario(head, **parts), encoding="utf-8")
    return str(path)
