"""`irb-twin new`: write a small controller, scenario, robot or station to start from, or the tutorials."""

import importlib.util
import json
import keyword
import os
import re
import shutil
import sys
import warnings
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from decimal import Decimal
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple

from scenarios.options import argument, option
from scenarios.shell.output import console, print_to_stderr
from scenarios.shell.parser import Call, Command
from twin.base.errors import ModelWarning, ToolFrameWarning, WrongUse, describe_error

CELL = re.compile(r"^```\{code-cell\}\n((?::[^\n]*\n)*)(.*?)\n```$", flags=re.M | re.S)
HEADER = re.compile(r"\A---\n.*?\n---\n", flags=re.S)
DOWNLOAD = re.compile(r"^\{nb-download\}.*$", flags=re.M)
LINK = re.compile(r"\{doc\}`(?:(?P<label>[^<`]+)<(?P<target>[^>`]+)>|(?P<page>[^`]+))`")


def notebooks(folder: Path) -> dict[Path, str]:
    """Return the text of the notebook of every page, by its path in a folder."""
    pages = {
        Path(page.name).stem: page.read_text(encoding="utf-8")
        for page in resources.files("scenarios.templates").joinpath("tutorials").iterdir()
        if page.name.endswith(".md")
    }
    titles = {name: re.findall(r"^# (.+)$", text, flags=re.M)[0] for name, text in sorted(pages.items())}
    return {folder / f"{name}.ipynb": notebook(pages[name], titles) for name in titles}


def notebook(page: str, titles: Mapping[str, str]) -> str:
    """Return the notebook of a page, as JSON.

    Args:
        page: text of the page, in MyST Markdown: cells stand in fences that begin with `{code-cell}`.
        titles: titles of the pages that become notebooks, by name; links to others become plain text.
    """

    def link(found: re.Match[str]) -> str:
        name = (found["target"] or found["page"]).rpartition("/")[2]
        label = (found["label"] or titles.get(name, f"*{name.replace('_', ' ')}*")).strip()
        return f"[{label}]({name}.ipynb)" if name in titles else f"{label} (documentation)"

    parts = CELL.split(DOWNLOAD.sub("", HEADER.sub("", page)))  # text, options, code, text, ...
    cells: list[dict[str, Any]] = []
    for text, options, code in zip(parts[::3], [*parts[1::3], ""], [*parts[2::3], None], strict=True):
        if text.strip():
            cells.append({"cell_type": "markdown", "metadata": {}, "source": LINK.sub(link, text).strip()})
        if code is not None:
            folded = {"tags": ["hide-cell"], "jupyter": {"source_hidden": True}}
            metadata = folded if "hide-cell" in options else {}
            empty = {"execution_count": None, "outputs": []}
            cells.append({"cell_type": "code", "metadata": metadata, "source": code} | empty)
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


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
    "station": Kind(
        "my_station",
        {
            "my_station.toml": "NAME/station.toml",
            "my_server.mod": "NAME/server.mod",
            "my_watch.mod": "NAME/watch.mod",
            "my_client.py": "NAME/client.py",
        },
        (
            "irb-twin abb serve AT/NAME/station.toml --browser",
            "irb-twin abb serve AT/NAME/station.toml -- python AT/NAME/client.py",
        ),
    ),
}


NOTEBOOKS = Kind("", {}, ("python -m jupyterlab AT",))

BESIDE_URDF = Kind(
    "", {}, ("irb-twin check-model AT/robot.toml", "irb-twin run joint_tracking --robot AT/robot.toml")
)


class New(Command):
    """Write a small working controller, scenario, robot or station, and print what to type next.

    A robot is a folder with robot.toml, the URDF that is generated from it, and a test. With --from, it is a
    robot.toml beside a URDF of yours, for drives, friction, poses and limits.

    A station is a folder with station.toml, programs in RAPID, and a client of their socket, for irb-twin abb
    serve.

    new notebooks FOLDER writes the tutorials and lessons of the documentation as Jupyter notebooks.
    """

    kind: Literal["controller", "scenario", "robot", "station", "notebooks"] = argument(
        ", ".join((*KINDS, "notebooks")), "KIND"
    )
    name: str = argument(
        "lower-case letters, digits and _, as in sliding_mode; of notebooks: their folder", "NAME", ""
    )
    folder: Path = option(Path(), "folder of the new files (default: the current folder)", "DIR")
    urdf: Path | None = option(
        None, "robot: write robot.toml beside this URDF, or for it into NAME", "FILE.urdf", flag="--from"
    )

    def run(self, call: Call) -> int:
        """Write all files of a kind, or none."""
        name, folder = self.name, self.folder
        if self.urdf is not None:
            if self.kind != "robot" or (folder != Path() and not name):
                raise WrongUse(
                    "--from: expected new robot --from FILE.urdf, or new robot NAME --from FILE.urdf"
                )
            if name:
                require_free(name, folder, Kind("", {}, ()))
            kind, folder = BESIDE_URDF, folder / name if name else self.urdf.parent
            texts = beside_urdf(self.urdf, folder, name)
        elif self.kind == "notebooks":
            if not name or folder != Path():
                raise WrongUse("expected new notebooks FOLDER, as in new notebooks lessons")
            kind, folder = NOTEBOOKS, Path(name)
            texts = free_notebooks(folder)
        else:
            kind = KINDS[self.kind]
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
            for tool in ("pytest", "jupyterlab"):
                if tool in line and importlib.util.find_spec(tool) is None:
                    page.print(f"  {python_command()} -m pip install {tool}", soft_wrap=True)
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


def free_notebooks(folder: Path) -> dict[Path, str]:
    """Return the texts of the notebooks; raise `WrongUse` if one exists, or if the folder is none."""
    texts = notebooks(folder)
    if taken := [path for path in texts if path.exists() or path.is_symlink()]:
        raise WrongUse(f"{taken[0]} exists already: choose another folder; nothing was written")
    if folder.exists() and not folder.is_dir():
        raise WrongUse(f"{folder} is a file: expected a folder for the notebooks")
    if not folder.parent.is_dir():
        raise WrongUse(f"there is no folder {folder.parent}, in which {folder.name} would be made")
    return texts


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


UNKNOWN = """
# What the URDF does not say. Take the # away, and put in what you know; {n} numbers, one per joint:

# [rating]
# payload = 6.0                       # of the data sheet, in kg
# reach = 0.9                         # of the wrist centre, in m
# source = "data sheet"

# [poses.home]                        # in rad and m, or as q_deg
# q = {zeros}

# [drives]
# # motor turns per joint turn; inertia at the motor, in kg m^2; friction at the joint, in N m and N m s/rad
# ratio = {hundreds}
# rotor_inertia = {rotors}
# coulomb = {zeros}
# viscous = {zeros}
# source = {{ ratio = "?", rotor_inertia = "?", coulomb = "?", viscous = "?" }}
"""


def beside_urdf(path: Path, folder: Path | None = None, name: str = "") -> dict[Path, str]:
    """Return the text of a robot.toml for a URDF, by its path: what is known, and what is missing.

    Joints of a gripper, which the tool frame carries, are locked.

    Raises:
        WrongUse: it is not a URDF, or there is a robot.toml already.
        RobotError: the URDF cannot be loaded.
    """
    import numpy as np

    import twin
    from twin.physics.robot.export import file_text, urdf_facts
    from twin.physics.robot.loading import is_urdf

    folder = path.parent if folder is None else folder
    target = folder / "robot.toml"
    if not is_urdf(path):
        raise WrongUse(f"--from {path}: expected a file name that ends in .urdf")
    if target.exists():
        raise WrongUse(f"{target} exists already: remove it, or copy the URDF to another folder")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        warnings.simplefilter("ignore", ToolFrameWarning)
        robot = twin.load(path)
    tree, nearest = robot.tree, np.clip(0.0, robot.q_min, robot.q_max).tolist()
    fingers = {
        name: at
        for joint, name, at in zip(robot.driven, robot.joint_names, nearest, strict=True)
        if tree.flange_joint in tree.carriers(joint)[:-1] and not robot.loops
    }
    robot = twin.robot.locked(robot, fingers)
    comment = [f"Robot of {path.name}, which has the links, joints, shapes and frames."]
    comment += [robot.tool_reason] if robot.tool_reason else []
    comment += robot.notes
    if fingers:
        comment.append(
            f"The gripper ({', '.join(fingers)}) does not move: take [joints.locked] away for that."
        )
    joints: dict[str, Any] = {"names": list(robot.joint_names)}
    for key, limits in {"q_min": robot.q_min, "q_max": robot.q_max}.items():
        if np.all(np.isfinite([robot.q_min, robot.q_max])):
            joints[key] = limits.tolist()
    for key, limits in {"qd_max": robot.qd_max, "effort": robot.tau_max}.items():
        joints[key] = limits.tolist()
        if missing := [n for n, most in zip(robot.joint_names, limits, strict=True) if most == np.inf]:
            comment.append(f"The URDF has no {key} of {', '.join(missing)}: inf is no limit.")
    if "q_min" not in joints:
        comment.append("Not all joints have a range: q_min and q_max of [joints] would give them one.")
    if robot.inertia_fault:
        comment.append(f"No dynamics: {robot.inertia_fault}.")
    facts = urdf_facts(robot)
    facts |= {"name": name} if name else {}
    if folder != path.parent:
        same_drive = path.absolute().drive == folder.absolute().drive
        facts["urdf"] = Path(os.path.relpath(path, folder) if same_drive else path.absolute()).as_posix()
    facts["joints"] = joints | {"source": f"{path.name}; rad and N m, or m and N of a joint that slides"}
    facts["joints"] |= {"locked": fingers} if fingers else {}
    n = robot.n
    words = {"zeros": [0.0] * n, "hundreds": [100.0] * n, "rotors": [1e-4] * n}
    return {target: file_text(facts, comment) + UNKNOWN.format(n=n, **words)}


def write(texts: dict[Path, str]) -> None:
    """Write all files, or none of them.

    Raises:
        OSError: a file cannot be written.
    """
    from twin.base.atomic_file import atomic_write

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
