r"""Predefined functions of RAPID: one line of a table for each.

A line has the name, the arguments in RAPID's notation, and a Python function of their values, such as
`"StrFind": of("string Str, num ChPos, string Set \NotInSet", strings.str_find)`.  An optional argument is
given to the Python function by its name in lower case; a switch is True.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from twin.abb.rapid import frames
from twin.abb.rapid import strings_and_files as strings
from twin.abb.rapid.arguments import Arguments, expression_of
from twin.abb.rapid.expressions import ABSENT, Cell, Part
from twin.abb.rapid.moves import Instruction
from twin.abb.rapid.recorder import Recorder, Stopped
from twin.abb.rapid.strings_and_files import open_file
from twin.abb.rapid.values import NUM, PREDEFINED, PRINTED, STATES, STRING, Double, Record, rounded, text_of
from twin.base.errors import RapidError

MOST_WHOLE = 2**23
"""Largest whole number up to which all are numbers of the type num."""


class Function(NamedTuple):
    """Predefined function: names of its required arguments, and what computes its value."""

    names: tuple[str, ...]
    run: Callable[[Recorder, Arguments], Any]


ARGUMENT = re.compile(r"(\\?)(\w+)(?: (\w+))?")


def of(arguments: str, compute: Callable[..., Any]) -> Function:
    """Return a predefined function that needs the values of its arguments alone."""
    found = [match.groups() for match in ARGUMENT.finditer(arguments)]
    required = [(name, type_) for optional, type_, name in found if not optional]
    options = {(name or type_).lower(): type_ if name else "" for optional, type_, name in found if optional}

    def run(recorder: Recorder, given: Arguments) -> Any:
        values = [given.value(k, type_) for k, (_, type_) in enumerate(required)]
        chosen = {name: given.value(name, type_) if type_ else True
                  for name, type_ in options.items() if name in given}  # fmt: skip
        try:
            value = compute(*values, **chosen)
            if isinstance(value, (int, float)) and not isinstance(value, (bool, Double)):
                return rounded(float(value), *values)
        except (ArithmeticError, IndexError, KeyError, ValueError, struct.error) as error:
            shown = ", ".join(map(text_of, values))
            reason = f": {error}" if "expected" in str(error) else ""
            raise RapidError(f"{given.name}({shown}) has no value{reason}", number="err_argvalerr") from None
        return value

    return Function(tuple(name for name, _ in required), run)


def with_recorder(names: str, run: Callable[[Recorder, Arguments], Any]) -> Function:
    """Return a predefined function that looks at the program and its arm."""
    return Function(tuple(names.split()), run)


def constant(value: Any) -> Function:
    """Return a predefined function whose value is assumed, since it is that of a controller."""

    def run(recorder: Recorder, given: Arguments) -> Any:
        recorder.assume(given.interpreter.place, f"{given.name} returns {text_of(value)} here")
        return value

    return Function((), run)


# ------------------------------------------------------------------------------------ data and operator


def _val_to_str(recorder: Recorder, given: Arguments) -> str:
    value = given.interpreter.evaluate(given.expression(0))
    return value if isinstance(value, str) else text_of(value, PRINTED)


def _str_to_val(recorder: Recorder, given: Arguments) -> bool:
    cell = given.cell(1)
    text = given.value(0, STRING)
    if cell.type == STRING:
        given.write(1, text.strip().strip('"'))
        return True
    try:
        given.write(1, given.interpreter.evaluate(expression_of(text), cell.type, cell.dimensions))
    except RapidError:
        return False
    return True


def _dnum_to_num(recorder: Recorder, given: Arguments) -> float:
    value = given.value(0, "dnum")
    if "integer" in given and (value != round(value) or abs(value) > MOST_WHOLE):
        raise RapidError(f"DnumToNum: {text_of(value)} is no whole num", number="err_argvalerr")
    return rounded(float(value))


def _dim(recorder: Recorder, given: Arguments) -> float:
    value, which = given.interpreter.read(given.cell(0)), int(given.value(1, NUM))
    for _ in range(which - 1):
        value = value[0] if isinstance(value, list) and value else None
    if which < 1 or not isinstance(value, list):
        raise RapidError(f"Dim: {given.name_of(0)} has no dimension {which}", number="err_illdim")
    return float(len(value))


def _present(recorder: Recorder, given: Arguments) -> bool:
    frame = given.interpreter.frame
    found = frame and frame.data.get(given.name_of(0).lower())
    if not isinstance(found, (Cell, Part)):
        raise RapidError(f"Present needs a parameter, got {given.name_of(0) or 'an expression'}", "type")
    return found is not ABSENT


def _is_kind(*kinds: str) -> Function:
    return with_recorder("DatObj", lambda recorder, given: given.cell(0).kind in kinds)


def _test_and_set(recorder: Recorder, given: Arguments) -> bool:
    before = given.cell(0).value
    given.write(0, True)
    return not before


def _ui_entry(recorder: Recorder, given: Arguments) -> float:
    values = {name: given.optional(name, NUM, None) for name in ("initvalue", "minvalue", "maxvalue")}
    if given.name.lower() == "uinumtune":
        values["initvalue"] = given.value(0, NUM)
    assumed = values["initvalue"] if values["initvalue"] is not None else values["minvalue"]
    return ask_number(recorder, given, _message(given), 0.0 if assumed is None else assumed)


def _ui_alpha(recorder: Recorder, given: Arguments) -> str:
    answer = recorder.ask(given, _message(given))
    if answer is None:
        answer = given.optional("initstring", STRING, "")
        recorder.assume(given.interpreter.place, f"{given.name}: the operator enters {text_of(answer)}")
    return answer


def _ui_choice(recorder: Recorder, given: Arguments) -> float:
    return ask_number(recorder, given, _message(given), *buttons(given))


def buttons(given: Arguments) -> tuple[float, dict[str, float]]:
    """Return the first button of a message box, and the numbers of its buttons by their texts."""
    if "btnarray" in given:
        texts = given.interpreter.evaluate(given.named["btnarray"].value)
        keys = {text: k + 1.0 for k, text in enumerate(texts) if isinstance(text, str) and text}
        return min(keys.values(), default=1.0), keys
    words = BUTTONS.get(int(given.optional("buttons", NUM, 0.0)), ())
    keys = {word: PREDEFINED[f"res{word}"].value for word in words}
    return next(iter(keys.values()), 1.0), keys


BUTTONS = {
    0: ("ok",), 1: ("abort", "retry", "ignore"), 2: ("ok", "cancel"), 3: ("retry", "cancel"),
    4: ("yes", "no"), 5: ("yes", "no", "cancel"),
}  # fmt: skip
"""Buttons of message boxes by their numbers, btnOK and others."""

MOST_QUESTIONS = 100
"""Number of answers to one question without a move from which on a program waits in a menu."""


def _message(given: Arguments) -> str:
    return " ".join(given.value(name, STRING) for name in ("header", "message") if name in given)


def ask_number(
    recorder: Recorder,
    given: Arguments,
    question: str,
    assumed: float,
    keys: Mapping[str, float] | None = None,
) -> float:
    """Return the operator's number, or the assumed one with a note.

    Args:
        recorder: results of the program, with the operator.
        given: arguments of the question, for messages.
        question: text of the question.
        assumed: number without an answer.
        keys: numbers of keys by their texts.

    Raises:
        RapidError: the answer is no number, and no key.
    """
    place = given.interpreter.place
    by_text = {text.lower(): number for text, number in (keys or {}).items()}
    while (answer := recorder.ask(given, question, tuple(keys or ()))) is not None:
        try:
            return by_text[answer.lower()] if answer.lower() in by_text else float(answer)
        except ValueError:
            recorder.refuse_answer(f"{given.name}: expected a number from the operator, got {answer!r}")
    repeated = recorder.operator.times_asked((place, given.name, question), recorder.moves)
    if repeated > MOST_QUESTIONS:
        raise Stopped(f"the program waits in the menu of line {place[1]}: --operator")
    if repeated:  # the program asks again: it does not go on with the answer before
        numbers = sorted(keys.values()) if keys else [assumed + k for k in range(MOST_QUESTIONS + 1)]
        assumed = numbers[repeated % len(numbers)]
    shown = f" to {text_of(question)}" if question else ""
    key = next((f" ({text_of(text)})" for text, number in (keys or {}).items() if number == assumed), "")
    recorder.assume(place, f"{given.name}: the operator answers {assumed:g}{key}{shown} (--operator)")
    return assumed


# ----------------------------------------------------------------------------------- files and raw bytes


def _read_line(recorder: Recorder, given: Arguments) -> str:
    line = recorder.files.line(open_file(recorder, given))
    return "EOF" if line is None else line


def _read_number(recorder: Recorder, given: Arguments) -> float:
    line = recorder.files.line(open_file(recorder, given))
    try:
        return PREDEFINED["eof_num"].value if line is None else float(line)
    except ValueError:
        raise RapidError(
            f"{given.name} reads {text_of(line)}, expected a number", number="err_rcvdata"
        ) from None


def _read_byte(recorder: Recorder, given: Arguments) -> float:
    character = recorder.files.characters(open_file(recorder, given), 1)
    return float(ord(character)) if character else PREDEFINED["eof_bin"].value


def _read_characters(recorder: Recorder, given: Arguments) -> str:
    return recorder.files.characters(open_file(recorder, given), int(given.value(1, NUM))) or "EOF"


def _size(recorder: Recorder, given: Arguments) -> int | None:
    name = given.value(0, STRING)
    size = recorder.files.size(name)
    if size is None and not recorder.files.has_home:
        recorder.assume(given.interpreter.place, f"{given.name}: there is no {name} (--home DIR has it)")
    return size


def _is_file(recorder: Recorder, given: Arguments) -> bool:
    return _size(recorder, given) is not None


def _file_size(recorder: Recorder, given: Arguments) -> float:
    size = _size(recorder, given)
    if size is None and not recorder.files.has_home:
        return 0.0
    if size is None:
        given.interpreter.raise_error("err_fileacc", f"{given.name}: there is no such file")
    return float(size)


# ---------------------------------------------------------------------------------------------- the arm


class _Unjudged:
    """Arm of a program whose kinematics is not judged: it is at its last target."""

    def __init__(self, recorder: Recorder, given: Arguments) -> None:
        self._last = recorder.last_target
        recorder.assume(
            given.interpreter.place, f"{given.name} returns the last target, because kinematics is not judged"
        )

    def joints(self) -> Record:
        last = self._last
        zero = [Record("robjoint", [0.0] * 6), Record("extjoint", [9e9] * 6)]
        return last if last is not None and last.type == "jointtarget" else Record("jointtarget", zero)

    def target(self, tool: Record, work_object: Record) -> Record:
        last = self._last
        if last is not None and last.type == "robtarget":
            return last
        pose = frames.pose_record(frames.turn(0, 0.0))
        conf, axes = Record("confdata", [0.0] * 4), Record("extjoint", [9e9] * 6)
        return Record("robtarget", [pose["trans"], pose["rot"], conf, axes])

    def calculated_target(self, target: Record, tool: Record, work_object: Record) -> Record:
        return self.target(tool, work_object)

    def calculated_joints(self, target: Record, tool: Record, work_object: Record) -> Record:
        return self.joints()


def _work_object(given: Arguments) -> Record:
    return given.optional("wobj", "wobjdata", PREDEFINED["wobj0"].value)


def _robot(recorder: Recorder, given: Arguments) -> Any:
    return recorder.arm or _Unjudged(recorder, given)


def _arm(recorder: Recorder, given: Arguments) -> Any:
    arm = _robot(recorder, given)
    if recorder.arm is not None:
        recorder.arm.stay()
        if recorder.events and not getattr(recorder.events[-1], "stops", True):
            recorder.note(
                given.interpreter.place,
                f"{given.name} behind a fly-by point: taken as if the arm had reached it",
            )
    return arm


def _c_rob_t(recorder: Recorder, given: Arguments) -> Record:
    tool = given.optional("tool", "tooldata", PREDEFINED["tool0"].value)
    return _arm(recorder, given).target(tool, _work_object(given))


def _calc(name: str, type_: str) -> Callable[[Recorder, Arguments], Record]:
    def run(recorder: Recorder, given: Arguments) -> Record:
        arm, tool = _robot(recorder, given), given.value(1, "tooldata")
        try:
            return getattr(arm, name)(given.value(0, type_), tool, _work_object(given))
        except RapidError as error:
            error.number = error.number or "err_roblimit"
            raise

    return run


def _input(recorder: Recorder, given: Arguments) -> float:
    return recorder.signals.read(given.signal(0), given.interpreter.place)


def _clk_read(recorder: Recorder, given: Arguments) -> float:
    elapsed, since = given.opaque(0, tuple, (0.0, None))
    return rounded(elapsed if since is None else elapsed + recorder.now() - since)


ASSUMED: dict[str, Any] = {
    "ValidIO": True, "IOUnitState": 1.0, "UIClientExist": False, "FSSize": 1e9, "CTime": "00:00:00",
    "CDate": "2000-01-01", "GetTime": 0.0, "OpMode": PREDEFINED["op_auto"].value,
    "RunMode": PREDEFINED["run_cont_cycle"].value, "RobOS": False, "RobName": "ROB_1",
    "GetTaskName": "T_ROB1", "TaskRunMec": True, "TaskRunRob": True, "GetSysInfo": "", "GetServiceInfo": "",
    "GetNextSym": False, "GetNextMechUnit": False, "GetMecUnitName": "ROB_1", "IsMechUnitActive": True,
    "IsSyncMoveOn": False, "IsMainTask": True, "TextGet": "text", "TextTabGet": 1.0,
    "TextTabFreeToUse": False, "CSpeedOverride": 100.0, "EventType": 0.0, "ReadMotor": 0.0,
    "GetMotorTorque": 0.0, "MaxRobSpeed": 7000.0, "MaxRobReorientSpeed": 500.0,
    "MaxExtLinearSpeed": 5000.0, "MaxExtReorientSpeed": 1000.0, "PathRecValidBwd": False,
    "SocketGetStatus": float(STATES.index("socket_closed")), "PathRecValidFwd": False,
    "PFRestart": False, "ExecLevel": 0.0,
}  # fmt: skip
"""Values of functions that are those of a controller, and are assumed here."""

FUNCTIONS: dict[str, Function] = {
    # numbers
    "Abs": of("num Value", abs),
    "AbsDnum": of("dnum Value", abs),
    "Sqrt": of("num Value", math.sqrt),
    "SqrtDnum": of("dnum Value", math.sqrt),
    "Exp": of("num Exponent", math.exp),
    "Pow": of("num Base, num Exponent", math.pow),
    "PowDnum": of("dnum Base, num Exponent", math.pow),
    "Max": of("num A, num B", max),
    "Min": of("num A, num B", min),
    "Sin": of("num Angle", lambda angle: math.sin(math.radians(angle))),
    "Cos": of("num Angle", lambda angle: math.cos(math.radians(angle))),
    "Tan": of("num Angle", lambda angle: math.tan(math.radians(angle))),
    "ASin": of("num Value", lambda value: math.degrees(math.asin(value))),
    "ACos": of("num Value", lambda value: math.degrees(math.acos(value))),
    "ATan": of("num Value", lambda value: math.degrees(math.atan(value))),
    "ATan2": of("num Y, num X", lambda y, x: math.degrees(math.atan2(y, x))),
    "Round": of(r"num Val \num Dec", strings.cut(strings.half_away)),
    "RoundDnum": of(r"dnum Val \num Dec", strings.cut(strings.half_away)),
    "Trunc": of(r"num Val \num Dec", strings.cut(math.trunc)),
    "TruncDnum": of(r"dnum Val \num Dec", strings.cut(math.trunc)),
    "NumToDnum": of("num Value", Double),
    "DnumToNum": with_recorder("Value", _dnum_to_num),
    "BitAnd": of("num A, num B", strings.bits("and")),
    "BitOr": of("num A, num B", strings.bits("or")),
    "BitXOr": of("num A, num B", strings.bits("xor")),
    "BitNeg": of("num A", strings.bits("neg")),
    "BitLSh": of("num A, num Steps", strings.bits("left")),
    "BitRSh": of("num A, num Steps", strings.bits("right")),
    "BitCheck": of("num A, num Bit", strings.bits("check")),
    "BitAndDnum": of("dnum A, dnum B", strings.bits("and", 52)),
    "BitOrDnum": of("dnum A, dnum B", strings.bits("or", 52)),
    "BitXOrDnum": of("dnum A, dnum B", strings.bits("xor", 52)),
    "BitNegDnum": of("dnum A", strings.bits("neg", 52)),
    "BitLShDnum": of("dnum A, num Steps", strings.bits("left", 52)),
    "BitRShDnum": of("dnum A, num Steps", strings.bits("right", 52)),
    "BitCheckDnum": of("dnum A, num Bit", strings.bits("check", 52)),
    # strings
    "NumToStr": of(r"num Val, num Dec \Exp", strings.num_to_str),
    "DnumToStr": of(r"dnum Val, num Dec \Exp", strings.num_to_str),
    "StrLen": of("string Str", len),
    "StrPart": of("string Str, num ChPos, num Len", strings.str_part),
    "StrFind": of(r"string Str, num ChPos, string Set \NotInSet", strings.str_find),
    "StrMatch": of("string Str, num ChPos, string Pattern", strings.str_match),
    "StrMemb": of("string Str, num ChPos, string Set", strings.str_memb),
    "StrMap": of("string Str, string FromMap, string ToMap", strings.str_map),
    "StrOrder": of("string Str1, string Str2, string Order", strings.str_order),
    "StrDigCmp": of("string Digits1, num Relation, string Digits2", strings.str_dig_cmp),
    "StrDigCalc": of("string Digits1, num Operation, string Digits2", strings.str_dig_calc),
    "StrFormat": of(r"string Str \string Arg1 \string Arg2 \string Arg3 \string Arg4", strings.str_format),
    "ByteToStr": of(r"num Byte \Hex \Okt \Bin \Char", strings.byte_to_str),
    "StrToByte": of(r"string Str \Hex \Okt \Bin \Char", strings.str_to_byte),
    "DecToHex": of("string Str", lambda text: f"{int(text):X}"),
    "HexToDec": of("string Str", lambda text: str(int(text, 16))),
    "ValToStr": with_recorder("Val", _val_to_str),
    "StrToVal": with_recorder("Str Val", _str_to_val),
    # data
    "Dim": with_recorder("ArrPar DimNo", _dim),
    "Present": with_recorder("OptPar", _present),
    "IsPers": _is_kind("PERS", "FIXED"),
    "IsVar": _is_kind("VAR"),
    "TestAndSet": with_recorder("Object", _test_and_set),
    # positions
    "Offs": of("robtarget Point, num XOffset, num YOffset, num ZOffset", frames.offs),
    "RelTool": of(r"robtarget Point, num Dx, num Dy, num Dz \num Rx \num Ry \num Rz", frames.rel_tool),
    "EulerZYX": of(r"orient Rotation \X \Y \Z", frames.euler_zyx),
    "OrientZYX": of("num ZAngle, num YAngle, num XAngle", frames.orient_zyx),
    "NOrient": of("orient Rotation", frames.normalised),
    "PoseMult": of("pose Pose1, pose Pose2", frames.pose_mult),
    "PoseInv": of("pose Pose", frames.pose_inv),
    "PoseVect": of("pose Pose, pos Pos", frames.pose_vect),
    "Distance": of("pos Point1, pos Point2", lambda one, other: math.dist(one.values, other.values)),
    "DotProd": of("pos Vector1, pos Vector2", lambda one, other: float(np.dot(one.values, other.values))),
    "VectMagn": of("pos Vector", lambda vector: math.hypot(*vector.values)),
    "DefFrame": of(
        r"robtarget NewP1, robtarget NewP2, robtarget NewP3 \num Origin", frames.def_frame
    ),
    "CRobT": with_recorder("", _c_rob_t),
    "CPos": with_recorder("", lambda recorder, given: _c_rob_t(recorder, given)["trans"]),
    "CJointT": with_recorder("", lambda recorder, given: _arm(recorder, given).joints()),
    "CalcRobT": with_recorder("Joint_target Tool", _calc("calculated_target", "jointtarget")),
    "CalcJointT": with_recorder("Rob_target Tool", _calc("calculated_joints", "robtarget")),
    "CTool": with_recorder("", lambda recorder, given: recorder.tool),
    "CWObj": with_recorder("", lambda recorder, given: recorder.work_object),
    # signals
    **dict.fromkeys(["DInput", "DOutput", "AInput", "AOutput", "GInput", "GOutput", "GInputDnum",
                     "GOutputDnum"], with_recorder("Signal", _input)),
    "TestDI": with_recorder("Signal", lambda recorder, given: _input(recorder, given) == 1.0),
    # operator
    "UINumEntry": with_recorder("", _ui_entry),
    "UINumTune": with_recorder("InitValue Increment", _ui_entry),
    "UIDnumEntry": with_recorder("", _ui_entry),
    "UIAlphaEntry": with_recorder("", _ui_alpha),
    "UIMessageBox": with_recorder("", _ui_choice),
    "UIListView": with_recorder("ListItems", _ui_choice),
    # files
    "ReadStr": with_recorder("IODevice", _read_line),
    "ReadNum": with_recorder("IODevice", _read_number),
    "ReadStrBin": with_recorder("IODevice NoOfChars", _read_characters),
    "ReadBin": with_recorder("IOChannel", _read_byte),
    "RawBytesLen": with_recorder("RawData", lambda recorder, given: float(len(given.opaque(0, bytes, b"")))),
    "IsFile": with_recorder("Path", _is_file),
    "FileSize": with_recorder("Path", _file_size),
    # the controller
    "ClkRead": with_recorder("Clock", _clk_read),
    "IsStopMoveAct": with_recorder("", lambda recorder, given: recorder.stopped_at is not None),
    **{name: constant(value) for name, value in ASSUMED.items()},
}  # fmt: skip
"""Predefined functions by their names."""


def functions_for(
    recorder: Recorder, known: Mapping[str, Function | Instruction] = FUNCTIONS
) -> dict[str, Callable[[Arguments], Any]]:
    """Return the functions by their names in lower case, as an interpreter calls them."""

    def bound(function: Function | Instruction) -> Callable[[Arguments], Any]:
        def run(given: Arguments) -> Any:
            given.arrange(function.names)
            return function.run(recorder, given)

        return run

    return {name.lower(): bound(one) for name, one in known.items()}
