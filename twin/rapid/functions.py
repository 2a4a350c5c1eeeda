"""Predefined functions of RAPID: arithmetic, strings, positions, and the state of the arm."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from twin.errors import RapidError
from twin.rapid.expressions import ABSENT, Cell, Part
from twin.rapid.instructions import Recorder
from twin.rapid.program import Arguments
from twin.rapid.values import NUM, PREDEFINED, STRING, Record, rounded, text_of
from twin.rotations.rotations import matrix_from_quaternion, quaternion_from_matrix

Floats = np.ndarray
NORM_TOLERANCE = 1e-3
"""Largest deviation of a quaternion's length from 1; a smaller one is removed."""

# ---------------------------------------------------------------------------------------------- frames


def quaternion(orient: Record) -> Floats:
    """Return an orientation as a unit quaternion (4,), scalar first.

    Raises:
        RapidError: its length is not 1.
    """
    q = np.array(orient.values, dtype=float)
    length = np.linalg.norm(q)
    if not abs(length - 1.0) <= NORM_TOLERANCE:
        raise RapidError(
            f"the quaternion {text_of(orient)} has length {length:.6g}, expected 1 within {NORM_TOLERANCE:g}",
            "target",
        )
    return q / length


def matrix(trans: Record, rot: Record) -> Floats:
    """Return a pose (4, 4) from a position in mm and an orientation; lengths in [m]."""
    T = np.eye(4)
    T[:3, :3] = matrix_from_quaternion(quaternion(rot))
    T[:3, 3] = 1e-3 * np.array(trans.values)
    return T


def pose_record(T: Floats) -> Record:
    """Return a pose (4, 4) as a pose in mm."""
    trans = Record("pos", (1e3 * T[:3, 3]).tolist())
    return Record("pose", [trans, Record("orient", quaternion_from_matrix(T[:3, :3]).tolist())])


def frame_of(pose: Record) -> Floats:
    """Return the pose (4, 4) of a pose or a robtarget; lengths in [m]."""
    return matrix(pose["trans"], pose["rot"])


# ------------------------------------------------------------------------------------------ arithmetic


def _number(compute: Callable[..., Any], count: int = 1) -> Callable[[Recorder, Arguments], float]:
    def run(recorder: Recorder, given: Arguments) -> float:
        values = [given.value(i, NUM) for i in range(count)]
        try:
            return rounded(float(compute(*values)), *values)
        except ValueError:
            shown = ", ".join(map(text_of, values))
            raise RapidError(f"{given.name}({shown}) has no value") from None

    return run


def _cut(round_: Callable[[float], float]) -> Callable[[Recorder, Arguments], float]:
    def run(recorder: Recorder, given: Arguments) -> float:
        scale = 10.0 ** given.optional("dec", NUM, 0.0)
        return rounded(round_(given.value(0, NUM) * scale) / scale)

    return run


def _half_away(value: float) -> float:
    return math.copysign(math.floor(abs(value) + 0.5), value)


def _degrees(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda angle: function(math.radians(angle))


def _in_degrees(function: Callable[..., float]) -> Callable[..., float]:
    return lambda *values: math.degrees(function(*values))


# --------------------------------------------------------------------------------------------- strings


def _num_to_str(recorder: Recorder, given: Arguments) -> str:
    value, decimals = given.value(0, NUM), int(given.value(1, NUM))
    return f"{value:.{decimals}E}" if "exp" in given else f"{value:.{decimals}f}"


def _val_to_str(recorder: Recorder, given: Arguments) -> str:
    value = given.interpreter.evaluate(given.required[0].value)
    return value if isinstance(value, str) else text_of(value)


def _str_part(recorder: Recorder, given: Arguments) -> str:
    text, first, length = given.value(0, STRING), int(given.value(1, NUM)), int(given.value(2, NUM))
    if not (1 <= first <= len(text) + 1 and length >= 0 and first + length <= len(text) + 1):
        raise RapidError(
            f"StrPart({text_of(text)}, {first}, {length}): expected a part of {len(text)} characters"
        )
    return text[first - 1 : first - 1 + length]


def _str_find(recorder: Recorder, given: Arguments) -> float:
    text, first, wanted = given.value(0, STRING), int(given.value(1, NUM)), given.value(2, STRING)
    outside = "notinset" in given
    for i in range(first - 1, len(text)):
        if (text[i] in wanted) != outside:
            return float(i + 1)
    return float(len(text) + 1)


def _str_match(recorder: Recorder, given: Arguments) -> float:
    text, first, pattern = given.value(0, STRING), int(given.value(1, NUM)), given.value(2, STRING)
    found = text.find(pattern, first - 1)
    return float(found + 1 if found >= 0 else len(text) + 1)


def _str_to_val(recorder: Recorder, given: Arguments) -> bool:
    from twin.rapid.language import parse

    cell = given.cell(1)
    text = given.value(0, STRING)
    if cell.type == STRING:
        cell.value = text.strip().strip('"')
        return True
    try:
        module = parse(f"MODULE M\nVAR num x := {text};\nENDMODULE").modules[0]
        value = given.interpreter.evaluate(module.items[0].initial, cell.type, cell.dimensions)
        cell.value = given.interpreter.types.converted(value, cell.type, cell.dimensions)
    except RapidError:
        return False
    return True


def _byte_to_str(recorder: Recorder, given: Arguments) -> str:
    value = int(given.value(0, NUM))
    if "char" in given:
        return chr(value)
    return f"{value:02X}" if "hex" in given else str(value)


# ------------------------------------------------------------------------------------ data and targets


def _dim(recorder: Recorder, given: Arguments) -> float:
    value, which = given.interpreter.read(given.cell(0)), int(given.value(1, NUM))
    for _ in range(which - 1):
        value = value[0] if isinstance(value, list) and value else None
    if which < 1 or not isinstance(value, list):
        raise RapidError(f"Dim: {given.name_of(0)} has no dimension {which}")
    return float(len(value))


def _present(recorder: Recorder, given: Arguments) -> bool:
    frame = given.interpreter.frame
    found = frame and frame.data.get(given.name_of(0).lower())
    if not isinstance(found, (Cell, Part)):
        raise RapidError(f"Present needs a parameter, got {given.name_of(0) or 'an expression'}", "type")
    return found is not ABSENT


def _offs(recorder: Recorder, given: Arguments) -> Record:
    target = given.value(0, "robtarget")
    offset = [given.value(i, NUM) for i in (1, 2, 3)]
    moved = [rounded(x + dx) if dx else x for x, dx in zip(target["trans"].values, offset, strict=True)]
    return target.changed(trans=Record("pos", moved))


def _rel_tool(recorder: Recorder, given: Arguments) -> Record:
    target = given.value(0, "robtarget")
    T = np.eye(4)
    T[:3, 3] = [1e-3 * given.value(i, NUM) for i in (1, 2, 3)]
    for name, axis in (("rx", 0), ("ry", 1), ("rz", 2)):
        if name in given:
            T = T @ _turn(axis, math.radians(given.value(name, NUM)))
    pose = pose_record(frame_of(target) @ T)
    return target.changed(trans=pose["trans"], rot=pose["rot"])


def _turn(axis: int, angle: float) -> Floats:
    q = np.zeros(4)
    q[0], q[axis + 1] = math.cos(angle / 2), math.sin(angle / 2)
    T = np.eye(4)
    T[:3, :3] = matrix_from_quaternion(q)
    return T


def _euler_zyx(recorder: Recorder, given: Arguments) -> float:
    R = matrix_from_quaternion(quaternion(given.value(0, "orient")))
    if "z" in given:
        angle = math.atan2(R[1, 0], R[0, 0])
    elif "y" in given:
        angle = math.atan2(-R[2, 0], math.hypot(R[0, 0], R[1, 0]))
    else:
        angle = math.atan2(R[2, 1], R[2, 2])
    return rounded(math.degrees(angle))


def _orient_zyx(recorder: Recorder, given: Arguments) -> Record:
    T = np.eye(4)
    for i, axis in enumerate((2, 1, 0)):
        T = T @ _turn(axis, math.radians(given.value(i, NUM)))
    return pose_record(T)["rot"]


def _orientation(compute: Callable[[Floats], Floats]) -> Callable[[Recorder, Arguments], Record]:
    def run(recorder: Recorder, given: Arguments) -> Record:
        q = np.array(given.value(0, "orient").values)
        return Record("orient", compute(q / np.linalg.norm(q)).tolist())

    return run


def _frames(compute: Callable[..., Floats], count: int) -> Callable[[Recorder, Arguments], Record]:
    def run(recorder: Recorder, given: Arguments) -> Record:
        return pose_record(compute(*(frame_of(given.value(i, "pose")) for i in range(count))))

    return run


def _pose_vect(recorder: Recorder, given: Arguments) -> Record:
    T, p = frame_of(given.value(0, "pose")), np.array(given.value(1, "pos").values)
    return Record("pos", (T[:3, :3] @ p + 1e3 * T[:3, 3]).tolist())


def _distance(recorder: Recorder, given: Arguments) -> float:
    return rounded(math.dist(given.value(0, "pos").values, given.value(1, "pos").values))


def _dot(recorder: Recorder, given: Arguments) -> float:
    return rounded(float(np.dot(given.value(0, "pos").values, given.value(1, "pos").values)))


# --------------------------------------------------------------------------------------- the arm, inputs


def _work_object(given: Arguments) -> Record:
    return given.optional("wobj", "wobjdata", PREDEFINED["wobj0"].value)


def _robot(recorder: Recorder, given: Arguments) -> Any:
    if recorder.arm is None:
        raise RapidError(f"{given.name} needs a robot", "refusal")
    return recorder.arm


def _arm(recorder: Recorder, given: Arguments) -> Any:
    arm = _robot(recorder, given)
    if recorder.events and not getattr(recorder.events[-1], "stops", True):
        recorder.note(
            given.interpreter.place, f"{given.name} behind a fly-by point: taken as if the arm had reached it"
        )
    return arm


def _c_rob_t(recorder: Recorder, given: Arguments) -> Record:
    tool = given.optional("tool", "tooldata", PREDEFINED["tool0"].value)
    return _arm(recorder, given).target(tool, _work_object(given))


def _c_pos(recorder: Recorder, given: Arguments) -> Record:
    return _c_rob_t(recorder, given)["trans"]


def _c_joint_t(recorder: Recorder, given: Arguments) -> Record:
    return _arm(recorder, given).joints()


def _calc(name: str, type_: str) -> Callable[[Recorder, Arguments], Record]:
    def run(recorder: Recorder, given: Arguments) -> Record:
        arm, tool = _robot(recorder, given), given.value(1, "tooldata")
        return getattr(arm, name)(given.value(0, type_), tool, _work_object(given))

    return run


def _input(recorder: Recorder, given: Arguments) -> float:
    name = given.name_of(0)
    value = recorder.inputs.get(name.lower(), 0.0)
    recorder.note(given.interpreter.place, f"{given.name}({name}) read as {value:g}")
    return value


def _constant(value: Any) -> Callable[[Recorder, Arguments], Any]:
    def run(recorder: Recorder, given: Arguments) -> Any:
        recorder.note(given.interpreter.place, f"{given.name} returns {text_of(value)} here")
        return value

    return run


FUNCTIONS: dict[str, Callable[[Recorder, Arguments], Any]] = {
    "abs": _number(abs),
    "sqrt": _number(math.sqrt),
    "exp": _number(math.exp),
    "pow": _number(math.pow, 2),
    "max": _number(max, 2),
    "min": _number(min, 2),
    "sin": _number(_degrees(math.sin)),
    "cos": _number(_degrees(math.cos)),
    "tan": _number(_degrees(math.tan)),
    "asin": _number(_in_degrees(math.asin)),
    "acos": _number(_in_degrees(math.acos)),
    "atan": _number(_in_degrees(math.atan)),
    "atan2": _number(_in_degrees(math.atan2), 2),
    "round": _cut(_half_away),
    "trunc": _cut(math.trunc),
    "numtostr": _num_to_str,
    "dnumtostr": _num_to_str,
    "valtostr": _val_to_str,
    "strlen": lambda recorder, given: float(len(given.value(0, STRING))),
    "strpart": _str_part,
    "strfind": _str_find,
    "strmatch": _str_match,
    "strmemb": lambda recorder, given: (
        given.value(0, STRING)[int(given.value(1, NUM)) - 1] in given.value(2, STRING)
    ),
    "strtoval": _str_to_val,
    "bytetostr": _byte_to_str,
    "strtobyte": lambda recorder, given: float(ord(given.value(0, STRING)[0])),
    "dim": _dim,
    "present": _present,
    "offs": _offs,
    "reltool": _rel_tool,
    "eulerzyx": _euler_zyx,
    "orientzyx": _orient_zyx,
    "norient": _orientation(lambda q: q),
    "posemult": _frames(lambda A, B: A @ B, 2),
    "poseinv": _frames(np.linalg.inv, 1),
    "posevect": _pose_vect,
    "distance": _distance,
    "dotprod": _dot,
    "vectmagn": lambda recorder, given: rounded(math.hypot(*given.value(0, "pos").values)),
    "crobt": _c_rob_t,
    "cpos": _c_pos,
    "cjointt": _c_joint_t,
    "calcrobt": _calc("calculated_target", "jointtarget"),
    "calcjointt": _calc("calculated_joints", "robtarget"),
    "ctool": lambda recorder, given: PREDEFINED["tool0"].value,
    "cwobj": lambda recorder, given: PREDEFINED["wobj0"].value,
    **dict.fromkeys(["dinput", "doutput", "ainput", "aoutput", "ginput", "goutput", "testdi"], _input),
    "clkread": _constant(0.0),
    "ctime": _constant("00:00:00"),
    "cdate": _constant("2000-01-01"),
    "gettaskname": _constant("T_ROB1"),
    "taskrunmec": _constant(True),
    "robos": _constant(False),
    "isstopmoveact": _constant(False),
    "isfile": _constant(False),
}
"""Predefined functions by their names in lower case."""

FUNCTIONS["testdi"] = lambda recorder, given: _input(recorder, given) == 1.0


def functions_for(recorder: Recorder) -> dict[str, Callable[[Arguments], Any]]:
    """Return the functions as an interpreter calls them."""
    return {name: partial(run, recorder) for name, run in FUNCTIONS.items()}
