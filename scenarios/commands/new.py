"""`irb-twin new`: write a small working controller, scenario or robot with its test, to start from."""

import importlib.util
import keyword
import re
import shutil
import sys
from contextlib import ExitStack, suppress
from decimal import Decimal
from importlib import resources
from pathlib import Path
from typing import Literal, NamedTuple

from scenarios.options import argument, option
from scenarios.shell.output import console, print_to_stderr
from scenarios.shell.parser import Call, Command
from twin.errors import WrongUse, describe_error


class Kind(NamedTuple):
    """Kind of file that can be written.

    stem: the name in the templates, which the new name replaces.
    files: path of the copy of each template; NAME stands for the new name.
    next: commands to type next; NAME stands for the name, CLASS for the class name, AT for the folder.
    """

    stem: str
    files: dict[str, str]
    next: tuple[str, ...]


KINDS = {
    "controller": Kind(
        "my_controller",
        {"my_controller.py": "NAME.py", "test_my_controller.py": "test_NAME.py"},
        (
            "irb-twin run joint_tracking --controller AT/NAME.py:CLASS pd computed_torque",
            "python -m pytest AT/test_NAME.py",
        ),
    ),
    "scenario": Kind(
        "my_scenario",
        {"my_scenario.py": "NAME.py", "test_my_scenario.py": "test_NAME.py"},
        (
            "irb-twin run AT/NAME.py --controller pd computed_torque --picture NAME.png",
            "python -m pytest AT/test_NAME.py",
        ),
    ),
    "robot": Kind(
        "my_robot",
        {"my_robot.toml": "NAME/robot.toml", "test_my_robot.py": "NAME/test_NAME.py"},
        (
            "irb-twin check-model AT/NAME/robot.toml",
            "irb-twin validate --robot AT/NAME/robot.toml",
            "python -m urdf.build AT/NAME/robot.toml      # whenever robot.toml has changed",
            "python -m pytest AT/NAME",
        ),
    ),
}


class New(Command):
    """Write a small working controller, scenario or robot with its test, and print what to type next.

    A robot is a folder with robot.toml, the URDF that is generated from it, and a test.
    """

    kind: Literal["controller", "scenario", "robot"] = argument(", ".join(KINDS), "KIND")
    name: str = argument("lower-case letters, digits and _, as in sliding_mode", "NAME")
    folder: Path = option(Path(), "folder of the new files (default: the current folder)", "DIR")

    def run(self, call: Call) -> int:
        """Write all files of a kind, or none."""
        kind, name, folder = KINDS[self.kind], self.name, self.folder
        require_free(name, folder, kind)
        texts = written(kind, name, folder)
        try:
            write(texts)
        except OSError as error:
            print_to_stderr(f"cannot write {error.filename}: {describe_error(error)}")
            return 1
        page = console()
        for path in texts:
            page.print(f"wrote {path}", soft_wrap=True)
        page.print("Next:")
        at = folder.as_posix() if folder.is_absolute() else f"./{folder.as_posix()}".removesuffix("/.")
        for line in kind.next:
            if "pytest" in line and importlib.util.find_spec("pytest") is None:
                page.print(f"  {python_command()} -m pip install pytest", soft_wrap=True)
            words = (
                line.replace("python ", f"{python_command()} ")
                .replace("AT", at)
                .replace("NAME", name)
                .replace("CLASS", class_name(name))
            )
            page.print(f"  {words}", soft_wrap=True)
        return 0


def python_command() -> str:
    """Return what to type for this Python: `python` if that is the one that the shell finds."""
    found = shutil.which("python")
    return "python" if found is not None and Path(found).samefile(sys.executable) else sys.executable


def require_free(name: str, folder: Path, kind: Kind) -> None:
    """Raise `WrongUse` if the name is invalid or taken, or if there is no such folder."""
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise WrongUse(
            f"expected a name of lower-case letters, digits and _, as in sliding_mode, got {name!r}"
        )
    if not folder.is_dir():
        raise WrongUse(f"--folder {folder}: there is no such folder")
    for path in (folder / name, *paths(kind, name, folder).values()):
        if path.exists() or path.is_symlink():
            raise WrongUse(f"{path} exists already: choose another name, or another --folder")
    if name.startswith("test_") or importlib.util.find_spec(name) is not None:
        raise WrongUse(f"{name!r} is the name of a module of Python or pytest: choose another name")


def paths(kind: Kind, name: str, folder: Path) -> dict[str, Path]:
    """Return the path of the copy of each template."""
    return {template: folder / place.replace("NAME", name) for template, place in kind.files.items()}


def class_name(name: str) -> str:
    """Return the class name: `sliding_mode` -> `SlidingMode`."""
    return "".join(word.capitalize() for word in name.split("_"))


def written(kind: Kind, name: str, folder: Path) -> dict[Path, str]:
    """Return the texts of all files by path, including a robot's URDF."""
    templates, texts = resources.files("scenarios.templates"), {}
    for template, path in paths(kind, name, folder).items():
        text = templates.joinpath(template).read_text(encoding="utf-8")
        texts[path] = text.replace(kind.stem, name).replace(class_name(kind.stem), class_name(name))
    for path in list(texts):
        if path.name == "robot.toml":
            from urdf import facts, urdf_text

            text = urdf_text.urdf(facts.parsed(path, texts[path], Decimal), path.name)
            texts[path.with_name(f"{name}.urdf")] = text
    return texts


def write(texts: dict[Path, str]) -> None:
    """Write all files, or none of them.

    Raises:
        OSError: a file cannot be written.
    """
    from twin.atomic_file import atomic_write

    folders = [path.parent for path in texts if not path.parent.exists()]
    try:
        with ExitStack() as stack:
            for path, text in texts.items():
                path.parent.mkdir(exist_ok=True)
                draft = stack.enter_context(atomic_write(path))
                draft.write_text(text, encoding="utf-8", newline="\n")
    except BaseException:
        for path in texts:
            path.unlink(missing_ok=True)
        for made in folders:
            with suppress(OSError):
                made.rmdir()
        raise
