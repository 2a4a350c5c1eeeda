"""Scenario files of a user's own, sound and unsound."""

HEAD = '''"""Something of one's own."""

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
    """The text of a file; `head` comes before everything, a part of that name replaces the sound one."""
    return head + HEAD + "\n\n".join((PARTS | parts).values())


def write(path, head="", **parts):
    """Write such a file, its folder too; its path as text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(scenario(head, **parts), encoding="utf-8")
    return str(path)
