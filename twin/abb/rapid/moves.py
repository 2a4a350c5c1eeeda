"""Move instructions of RAPID, and those of options that move like them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from twin.abb.rapid import syntax_tree as st
from twin.abb.rapid.arguments import Arguments
from twin.abb.rapid.frames import frame_of, norm_remark, pose_record
from twin.abb.rapid.recorder import Recorder
from twin.abb.rapid.targets import NO_LOAD, Move, Settings, Speed
from twin.abb.rapid.values import NUM, PREDEFINED, STRING, Record
from twin.base.errors import RapidError


class Instruction(NamedTuple):
    """Instruction: names of its required arguments, and what it does."""

    names: tuple[str, ...]
    run: Callable[[Recorder, Arguments], object]


MOVE_OPTIONS = "V", "T", "Z", "Inpos", "WObj", "TLoad", "NoEOffs", "Conc", "ID", "Corr"
"""Optional arguments of moves."""

IGNORED_OPTIONS = "conc", "id", "corr"
"""Optional arguments that change nothing here, and are noted."""

EXTERNAL = 9e9
"""Value of an external axis that is not there."""


def move(kind: str, names: str, *, process: str = "") -> Instruction:
    """Return a move instruction.

    Args:
        kind: joint, line or circle.
        names: names of the required arguments in order. `JointPos` is a jointtarget, `ToPoint` a robtarget,
            `CirPoint` the point on a circle; without `Zone` the arm stops; `Signal` and `Value` are an output
            that is set, `ProcName` a procedure that is called, `SearchPoint` the result of a search.
        process: what the instruction does beside the move, which is noted as not done.
    """
    order = tuple(names.split())
    place = {name: k for k, name in enumerate(order)}
    is_plain = not process

    def run(recorder: Recorder, given: Arguments) -> None:
        if is_plain:
            _check_options(recorder, given)
        at = given.interpreter.place
        via = None
        if kind == "circle":
            via = _target(recorder, given, place["CirPoint"], "robtarget", "the point on the circle")
        type_ = "jointtarget" if "JointPos" in place else "robtarget"
        to = place["JointPos" if "JointPos" in place else "ToPoint"]
        target = _target(recorder, given, to, type_, "the target")
        speeds = given.value(place["Speed"], "speeddata")
        zone = given.value(place["Zone"], "zonedata") if "Zone" in place else PREDEFINED["fine"].value
        tool = _frame(recorder, given, place["Tool"], "tooldata", PREDEFINED["tool0"].value)
        work_object = PREDEFINED["wobj0"].value
        if "wobj" in given:
            work_object = _frame(recorder, given, "wobj", "wobjdata", work_object)
        v_tcp, v_ori = given.optional("v", NUM, speeds["v_tcp"]), speeds["v_ori"]
        if "z" in given:
            zone = zone.changed(finep=False, pzone_tcp=given.value("z", NUM))
        if "inpos" in given:
            zone = zone.changed(finep=True)
        if "tload" in given:
            tool = tool.changed(tload=given.value("tload", "loaddata"))
        if not v_tcp > 0 or not v_ori > 0:
            raise RapidError(f"the speed is {v_tcp:g} mm/s and {v_ori:g} deg/s, expected more than 0")
        settings = recorder.settings
        if recorder.arm is not None:
            _check_frames(tool, work_object)
            _check_loads(recorder, given, tool, settings)
        if process:
            recorder.note(at, f"{given.name}: the move is made, {process}")
        if type_ == "robtarget" and settings.displacement is not None:
            target = _displaced(target, settings.displacement)
            via = None if via is None else _displaced(via, settings.displacement)
        recorder.tool, recorder.work_object = tool, work_object
        speed = Speed(min(v_tcp * settings.override, settings.speed_max), v_ori * settings.override)
        recorder.add(Move(
            *at, given.name, kind, target, speed, zone, tool, work_object, via,
            given.optional("t", NUM, None), settings, given.interpreter.routine,
            recorder.triggers(given, place),
        ))  # fmt: skip
        _act_at_target(recorder, given, place, target)

    return Instruction(order, run)


def _act_at_target(recorder: Recorder, given: Arguments, place: dict[str, int], target: Record) -> None:
    """Set the output of a move, call its procedure, or end its search."""
    if "Value" in place:
        signal = given.signal(place["Signal"])
        recorder.note(given.interpreter.place, f"{given.name} {signal} (logged)")
        recorder.set_at_target(signal, given.value(place["Value"], NUM))
    if "ProcName" in place:
        given.interpreter.call_procedure(given.value(place["ProcName"], STRING))
    if "SearchPoint" in place:
        at = given.interpreter.place
        recorder.note(at, f"{given.name}: no contact found, the search ends at its target")
        given.write(place["SearchPoint"], target)
        if given.interpreter.handles_errors:
            given.interpreter.raise_error("err_whlsearch", "no contact found")


def _check_options(recorder: Recorder, given: Arguments) -> None:
    """Refuse optional arguments that a move does not have, and note those that change nothing."""
    for option in given.named:
        if option not in [name.lower() for name in MOVE_OPTIONS]:
            raise RapidError(
                f"{given.name} has no argument \\{option}, it has {', '.join(MOVE_OPTIONS)}", "name"
            )
        if option in IGNORED_OPTIONS:
            recorder.note(given.interpreter.place, f"{given.name}: \\{option} is ignored")


def _target(recorder: Recorder, given: Arguments, which: int, type_: str, what: str) -> Record:
    """Return a target; one with external axes is refused where kinematics is judged."""
    record = given.value(which, type_)
    axes = record["extax"].numbers()
    used = [value for value in axes if abs(value - EXTERNAL) > 1.0 and value != 0.0]
    if used and recorder.arm is not None:
        raise RapidError(
            f"{what} has external axes ({used[0]:g}); only 9E9 is judged, --no-kinematics runs the program",
            "refusal",
        )
    if type_ == "robtarget" and (remark := norm_remark(record)):
        recorder.note(given.interpreter.place, f"{given.name}: {remark}")
    return record


def _frame(recorder: Recorder, given: Arguments, which: int | str, type_: str, default: Record) -> Record:
    """Return a tool or work object; a missing one is the default where kinematics is not judged."""
    argument = (
        given.named[which] if isinstance(which, str) else (given.required[which : which + 1] or [None])[0]
    )
    node = None if argument is None else argument.value
    if recorder.arm is None and isinstance(node, st.Variable) and given.interpreter.find(node.name) is None:
        recorder.assume(given.interpreter.place, f"{node.name} is not declared in these modules: any {type_}")
        return default
    return given.value(which, type_)


def _check_frames(tool: Record, work_object: Record) -> None:
    if not tool["robhold"] or work_object["robhold"]:
        raise RapidError("a work object that the robot holds (robhold) is not supported", "refusal")
    if work_object["ufmec"] or not work_object["ufprog"]:
        raise RapidError("a work object on a moving unit is not supported", "refusal")


def _check_loads(recorder: Recorder, given: Arguments, tool: Record, settings: Settings) -> None:
    """Refuse a negative mass, and remark on a load above the rating of the arm."""
    masses = tool["tload"]["mass"], settings.load["mass"]
    for mass in masses:
        if not mass >= 0:
            raise RapidError(f"{given.name}: a load of {mass:g} kg, expected at least 0")
    assert recorder.arm is not None
    rating = recorder.arm.robot.rating
    total = sum(mass for mass in masses if mass > NO_LOAD)
    if rating is not None and total > rating.payload:
        name = recorder.arm.robot.name
        recorder.note(
            given.interpreter.place, f"{total:g} kg on {name}, which is rated for {rating.payload:g} kg"
        )


def _displaced(target: Record, displacement: Record) -> Record:
    pose = pose_record(frame_of(displacement) @ frame_of(target))
    return target.changed(trans=pose["trans"], rot=pose["rot"])


def displacement_on(recorder: Recorder, given: Arguments) -> None:
    r"""Displace the program as the arm is displaced from a target (PDispOn), and turn it with `\Rot`."""
    tool = given.value(1, "tooldata")
    work_object = given.optional("wobj", "wobjdata", PREDEFINED["wobj0"].value)
    wanted = given.value(0, "robtarget")
    if "exep" in given:
        here = given.value("exep", "robtarget")
    else:
        here = wanted if recorder.arm is None else recorder.arm.target(tool, work_object)
    if "rot" in given:
        pose = pose_record(frame_of(here) @ np.linalg.inv(frame_of(wanted)))
    else:
        pairs = zip(here["trans"].values, wanted["trans"].values, strict=True)
        pose = Record(
            "pose", [Record("pos", [a - b for a, b in pairs]), Record("orient", [1.0, 0.0, 0.0, 0.0])]
        )
    recorder.settings = recorder.settings._replace(displacement=pose)


LINE, CIRCLE = "ToPoint Speed Zone Tool", "CirPoint ToPoint Speed Zone Tool"
WELD, WELD_CIRCLE = "ToPoint Speed Seam Weld Zone Tool", "CirPoint ToPoint Speed Seam Weld Zone Tool"
NO_WELD, NO_OUTPUT = "no seam is welded", "its trigger is not"
NO_PROCESS, BEAD = "its process is not", "ToPoint Speed Bead Zone Tool"


MOVES: dict[str, Instruction] = {
    "MoveAbsJ": move("joint", "JointPos Speed Zone Tool"),
    "MoveJ": move("joint", LINE),
    "MoveL": move("line", LINE),
    "MoveC": move("circle", CIRCLE),
    "MoveJDO": move("joint", f"{LINE} Signal Value"),
    "MoveLDO": move("line", f"{LINE} Signal Value"),
    "MoveCDO": move("circle", f"{CIRCLE} Signal Value"),
    "MoveJSync": move("joint", f"{LINE} ProcName"),
    "MoveLSync": move("line", f"{LINE} ProcName"),
    "MoveCSync": move("circle", f"{CIRCLE} ProcName"),
    "TriggJ": move("joint", "ToPoint Speed Trigg_1 Zone Tool", process=NO_OUTPUT),
    "TriggL": move("line", "ToPoint Speed Trigg_1 Zone Tool", process=NO_OUTPUT),
    "TriggC": move("circle", "CirPoint ToPoint Speed Trigg_1 Zone Tool", process=NO_OUTPUT),
    "TriggAbsJ": move("joint", "JointPos Speed Trigg_1 Zone Tool", process=NO_OUTPUT),
    "TriggJIOs": move("joint", LINE, process=NO_OUTPUT),
    "TriggLIOs": move("line", LINE, process=NO_OUTPUT),
    "SearchL": move("line", "Signal SearchPoint ToPoint Speed Tool", process="its search is not"),
    "SearchC": move("circle", "Signal SearchPoint CirPoint ToPoint Speed Tool", process="its search is not"),
    "ContactL": move("line", "ToPoint Speed Tool", process="its contact is not"),
    **dict.fromkeys(("ArcL", "ArcLStart", "ArcLEnd", "ArcL1", "ArcL2"), move("line", WELD, process=NO_WELD)),
    **dict.fromkeys(("ArcC", "ArcCStart", "ArcCEnd"), move("circle", WELD_CIRCLE, process=NO_WELD)),
    **dict.fromkeys(("DispL", "CapL", "LaserL"), move("line", BEAD, process=NO_PROCESS)),
    **dict.fromkeys(("DispC", "CapC"), move("circle", f"CirPoint {BEAD}", process=NO_PROCESS)),
    "PaintL": move("line", LINE, process=NO_PROCESS),
    "PaintC": move("circle", CIRCLE, process=NO_PROCESS),
    "SpotL": move("line", "ToPoint Speed Spot Gun Tool", process=NO_PROCESS),
    "SpotJ": move("joint", "ToPoint Speed Spot Gun Tool", process=NO_PROCESS),
    "SpotML": move("line", "ToPoint Speed Zone Tool", process=NO_PROCESS),
    "NutL": move("line", "ToPoint Speed Nut Gun Tool", process=NO_PROCESS),
}
"""Move instructions by their names."""
