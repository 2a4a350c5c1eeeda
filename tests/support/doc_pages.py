"""Execute the pages of the documentation: save their files, run their Python code and their commands.

- A fenced block after a line that ends with "Save this as `name`:" is written to that file.
- Any other ```` ```python ```` block is run; the blocks of a page share one namespace.
- An indented or ```` ```console ```` block whose first word is `irb-twin` is run by the program in this
  process.  A new process would take two seconds to import the same modules.  Such a run uses one process,
  motions are as short as `SHORT` if the command does not state how long, and a sweep has `SAMPLES` runs.
- A block that needs a shell, or begins with `python`, is run by bash.
- Ports of 6500 to 6599 are replaced by free ones, so that two runs of the tests do not meet.
- `<!-- not run: reason -->` before a block skips it; `<!-- exit status 1 -->` sets the expected status.
"""

import contextlib
import functools
import glob
import io
import os
import re
import shlex
import socket
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

from scenarios.shell.command_line import main
from tests.support.scenario_cases import SHORT
from twin.base.threads import VARIABLE

HOUSE = Path(__file__).parents[2]
PAGES = [
    HOUSE / "README.md",
    *sorted(path for path in HOUSE.glob("docs/**/*.md") if not {"_build", "tutorials"} & {*path.parts}),
    *sorted(HOUSE.glob("scenarios/templates/tutorials/*.md")),
]

SAVED = re.compile(r"[Ss]ave this as `([^`]+)`[^`]*:$")
WITHOUT_SHELL = re.compile(r"irb-twin [^|&;<>$`?(){}\[\]#~!\\]+")
SHORT = {name: SHORT[name] for name in (
    "constrained_circle", "gravity_hold", "joint_tracking", "laboratory", "model_agreement",
    "payload_mismatch", "parallelogram",
)} | {"joint_tracking": {"duration": 0.2}}  # fmt: skip
"""Settings of scenarios that a page does not state."""

SAMPLES = "10"
PORT = re.compile(r"(?<=[=:])65\d\d\b")
STATUS = re.compile(r"<!-- exit status (\d+) -->")


@dataclass(frozen=True)
class Block:
    """A block of a page.

    Attributes:
        kind: word after the fence, "" for an indented block.
        text: lines of the block.
        line: number of the block's first line in the page.
        before: paragraph before the block, as one line.
    """

    kind: str
    text: str
    line: int
    before: str

    @property
    def saved_as(self):
        """Name of the file that the reader saves the block as, or None."""
        found = SAVED.search(self.before)
        return found and found[1]

    @property
    def is_skipped(self):
        return self.before.startswith("<!-- not run: ")

    @property
    def is_command(self):
        return self.kind in ("", "console") and self.text.split()[:1] in (["irb-twin"], ["python"])

    @property
    def commands(self):
        """Text with the lines that end with a backslash joined to the next ones."""
        return re.sub(r"\\\n\s*", " ", self.text)

    @property
    def needs_bash(self):
        """Whether a line has shell syntax, or is no plain `irb-twin` command."""
        return not all(WITHOUT_SHELL.fullmatch(line) for line in self.commands.splitlines())

    @property
    def status(self):
        """Expected exit status of the commands."""
        found = STATUS.match(self.before)
        return int(found[1]) if found else 0


def blocks(text):
    """Yield the fenced and the indented blocks of a page, in order."""
    lines, before, i = text.splitlines(), "", 0
    while i < len(lines):
        line, start = lines[i], i
        if line.startswith("```"):
            fence = re.match("`+", line)[0]
            i += 1
            while lines[i] != fence:
                i += 1
            yield Block(line.strip("`"), "\n".join(lines[start + 1 : i]) + "\n", start + 2, before)
            before = ""
        elif line.startswith("    ") and not (start and lines[start - 1].strip()):
            while i + 1 < len(lines) and (lines[i + 1].startswith("    ") or not lines[i + 1].strip()):
                i += 1
            text = "\n".join(line[4:] for line in lines[start : i + 1]).rstrip()
            yield Block("", text + "\n", start + 1, before)
            before = ""
        elif line.strip():
            continues = start and lines[start - 1].strip() and before
            before = f"{before} {line.strip()}" if continues else line.strip()
        i += 1


def follow(page, folder):
    """Execute the blocks of a page in the current folder `folder`, and return their number."""
    namespace, executed, port = {"__name__": page.stem}, 0, functools.cache(free_port)
    for block in blocks(PORT.sub(lambda found: port(found[0]), page.read_text(encoding="utf-8"))):
        place = f"{page.relative_to(HOUSE)}, line {block.line}"
        if block.is_skipped:
            continue
        if block.saved_as:
            file = folder / block.saved_as
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        elif block.kind == "python":
            code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
            exec(code, namespace)
        elif block.is_command:
            if block.needs_bash:
                run_in_bash(block.commands, block.status, folder, place)
            else:
                run_in_process(block.commands, block.status, place)
        else:
            continue
        executed += 1
    return executed


def free_port(_):
    """Return a UDP port that is free, as text."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(("127.0.0.1", 0))
        return str(made.getsockname()[1])


def run_in_bash(commands, status, folder, place):
    """Run commands in bash up to the first that fails; raise AssertionError on another exit status."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PYTHONPATH": str(HOUSE), "PATH": path}
    command = ["bash", "-eu", "-o", "pipefail", "-c", commands.replace("\n$ ", "\n").removeprefix("$ ")]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == status, f"{place}: {commands}\n{ended.stdout}\n{ended.stderr}"


def run_in_process(commands, status, place):
    """Run `irb-twin` commands in this process up to the first that fails; check the exit status."""
    output, ended = io.StringIO(), 0
    for line in commands.splitlines():
        with (
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(output),
            warnings.catch_warnings(),
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setenv(VARIABLE, "1")
            warnings.simplefilter("default")  # as in a new process
            try:
                words = shlex.split(line)[1:]
                for name in [word for word in words if word in SHORT and "replay" not in words]:
                    flags = {f"--{key.replace('_', '-')}": str(value) for key, value in SHORT[name].items()}
                    words += [one for pair in flags.items() if pair[0] not in words for one in pair]
                if words[0] == "sweep" and "--list" not in words:
                    words += ["--samples", SAMPLES]
                ended = main([name for word in words for name in sorted(glob.glob(word)) or [word]])
            except SystemExit as end:  # as after --help
                ended = end.code or 0
        if ended:
            break
    assert ended == status, f"{place}: {commands}\n{output.getvalue()}"
