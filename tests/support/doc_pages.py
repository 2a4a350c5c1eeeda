"""The pages of the documentation as things to do, in order: files to save, Python to run, commands to give.

What is done, and what is not:

- a fenced block after a line that ends with "Save this as `name`:" is written to that file;
- any other block of ```` ```python ```` is run, all of a page in one namespace;
- an indented block, or one of ```` ```console ````, whose first word is `irb-twin` is given to the program
  in this process, which has imported what every new one would import again for two seconds, and which shares
  no runs between processes;
- bash runs what needs a shell, and what begins with `python`;
- `<!-- not run: why -->` before a block leaves it out, `<!-- exit status 1 -->` says how a command ends.
"""

import contextlib
import glob
import io
import os
import re
import shlex
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

from scenarios.cli.command_line import main
from twin.threads import VARIABLE

HOUSE = Path(__file__).parents[2]
PAGES = [
    HOUSE / "README.md",
    *sorted(path for path in HOUSE.glob("docs/**/*.md") if "_build" not in path.parts),
]

SAVED = re.compile(r"[Ss]ave this as `([^`]+)`[^`]*:$")
WITHOUT_SHELL = re.compile(r"irb-twin [^|&;<>$`?(){}\[\]#~!\\]+")
STATUS = re.compile(r"<!-- exit status (\d+) -->")


@dataclass(frozen=True)
class Block:
    """A block of a page.

    Attributes:
        kind: what stands after the fence, "" of an indented block.
        text: its lines.
        line: number of its first one in the page.
        before: the paragraph before it, as one line.
    """

    kind: str
    text: str
    line: int
    before: str

    @property
    def saved_as(self):
        """The file that the reader is to save it as, or None."""
        found = SAVED.search(self.before)
        return found and found[1]

    @property
    def is_left_out(self):
        return self.before.startswith("<!-- not run: ")

    @property
    def is_command(self):
        return self.kind in ("", "console") and self.text.split()[:1] in (["irb-twin"], ["python"])

    @property
    def needs_bash(self):
        """Whether there is more to it than words and names of files for `irb-twin`."""
        return not all(WITHOUT_SHELL.fullmatch(line) for line in self.text.splitlines())

    @property
    def status(self):
        """The exit status that a command must end with."""
        found = STATUS.match(self.before)
        return int(found[1]) if found else 0


def blocks(text):
    """The fenced and the indented blocks of a page, in order."""
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
            goes_on = start and lines[start - 1].strip() and before
            before = f"{before} {line.strip()}" if goes_on else line.strip()
        i += 1


def follow(page, folder):
    """Do what a page tells its reader, in a folder that is the current one; the number of things done."""
    namespace, done = {"__name__": page.stem}, 0
    for block in blocks(page.read_text(encoding="utf-8")):
        place = f"{page.relative_to(HOUSE)}, line {block.line}"
        if block.is_left_out:
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
                give(block.text, block.status, folder, place)
            else:
                give_here(block.text, block.status, place)
        else:
            continue
        done += 1
    return done


def give(commands, status, folder, place):
    """Give commands to bash; the first that fails ends them."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PYTHONPATH": str(HOUSE), "PATH": path}
    words = ["bash", "-eu", "-o", "pipefail", "-c", commands.replace("\n$ ", "\n").removeprefix("$ ")]
    ended = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == status, f"{place}: {commands}\n{ended.stdout}\n{ended.stderr}"


def give_here(commands, status, place):
    """Give commands `irb-twin` to the program in this process; the first that fails ends them."""
    said, ended = io.StringIO(), 0
    for line in commands.splitlines():
        with (
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
            warnings.catch_warnings(),
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setenv(VARIABLE, "1")
            warnings.simplefilter("default")  # as in a process of its own
            try:
                words = shlex.split(line)[1:]
                ended = main([name for word in words for name in sorted(glob.glob(word)) or [word]])
            except SystemExit as end:  # as after --help
                ended = end.code or 0
        if ended:
            break
    assert ended == status, f"{place}: {commands}\n{said.getvalue()}"
