"""Instructions of RAPID other than moves: one line of a table for each.

A line has the name, the names of the required arguments in order, and a Python function of the recorder and
the arguments, such as `"WaitTime": Instruction(names("Time"), _wait_time)`.  What changes nothing in the
motion is a name in `WITHOUT_EFFECT`; what needs a controller is a name in a list of `_refused`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from twin.abb.rapid import strings_and_files as data
from twin.abb.rapid import syntax_tree as st
from twin.abb.rapid.arguments import Arguments, expression_of
from twin.abb.rapid.expressions import Cell, Part
from twin.abb.rapid.functions import ask_number, buttons, functions_for
from twin.abb.rapid.moves import MOVES, Instruction, displacement_on
from twin.abb.rapid.recorder import Left, Recorder
from twin.abb.rapid.signals import Cause, Interrupts, Signal
from twin.abb.rapid.targets import Pause
from twin.abb.rapid.values import BOOL, NUM, STRING, rounded, text_of
from twin.base.errors import RapidError

Run = Callable[[Recorder, Arguments], object]

# --------------------------------------------------------------------------------------------- waits


def _wait_time(recorder: Recorder, given: Arguments) -> None:
    """Wait for a time (WaitTime)."""
    seconds = given.value(0, NUM)
    if not seconds >= 0:
        raise RapidError(f"WaitTime of {seconds:g} s, expected at least 0")
    if seconds:
        recorder.pause(Pause(*given.interpreter.place, seconds))


def _wait_signal(recorder: Recorder, given: Arguments) -> None:
    r"""Wait for the value of a signal (WaitDI and others), with `\LT` and `\GT` for a limit of it."""
    name = given.signal(0)
    wanted = given.value("dvalue", "dnum") if "dvalue" in given else given.value(1, NUM)

    def is_there() -> bool:
        value = recorder.signals.values.get(name.lower(), 0.0)
        return value < wanted if "lt" in given else value > wanted if "gt" in given else value == wanted

    beyond = wanted + ("gt" in given) - ("lt" in given)
    given.give("timeflag", False)
    recorder.wait(given, name, is_there, [(name, float(beyond))])


def _wait_until(recorder: Recorder, given: Arguments) -> None:
    """Wait for a condition (WaitUntil)."""
    condition = given.expression(0)
    interpreter = given.interpreter

    def is_there() -> bool:
        return interpreter.typed(interpreter.evaluate(condition), bool, BOOL)

    given.give("timeflag", False)
    recorder.wait(given, "", is_there, list(_levels(interpreter, condition)))


def _levels(interpreter: Any, node: Any) -> Any:
    """Yield the signals of a condition, with the values for which it holds."""
    if isinstance(node, st.Unary) and node.operator == "(":
        yield from _levels(interpreter, node.operand)
    elif isinstance(node, st.Binary) and node.operator == "AND":
        yield from _levels(interpreter, node.left)
        yield from _levels(interpreter, node.right)
    elif isinstance(node, st.Binary) and node.operator == "OR":
        yield from _levels(interpreter, node.left)
    elif isinstance(node, st.Binary) and node.operator == "=":
        side = node.left
        if isinstance(side, st.Function) and side.arguments:
            side = side.arguments[0].value
        name = interpreter.signal(side)
        if name is not None and name in interpreter.signals:
            value = interpreter.evaluate(node.right)
            if isinstance(value, float):
                yield name, value
    elif isinstance(node, st.Function) and node.name.lower() == "testdi":
        name = interpreter.signal(node.arguments[0].value)
        if name is not None:
            yield name, 1.0


# ---------------------------------------------------------------------------------------- interrupts

EDGE = 2.0
"""Value of `edge`: every change of a signal is the cause."""


def _number(given: Arguments, which: int) -> int:
    number = int(given.value(which, NUM))
    if number not in given.interpreter.interrupts.traps:
        raise RapidError(
            f"{given.name}: {given.name_of(which) or number} is not connected with a trap (CONNECT)",
            number="err_unkinum",
        )
    return number


def watch(
    given: Arguments, which: int, name: str, kind: str, fires: Callable[[Any, Any], bool], period: float = 0.0
) -> None:
    """Watch a cause of the interrupt that stands as an argument."""
    at = given.interpreter.now() + period
    single, safe = "single" in given or "singlesafe" in given, "singlesafe" in given
    number = _number(given, which)
    cause = Cause(number, name, kind, given.interpreter.place, single, safe, fires, period, at)
    given.interpreter.interrupts.watch(cause)


def _digital(recorder: Recorder, given: Arguments) -> None:
    wanted = given.value(1, NUM)
    watch(given, 2, given.signal(0), "signal", lambda before, after: wanted in (EDGE, after))


def _group(recorder: Recorder, given: Arguments) -> None:
    watch(given, 1, given.signal(0), "signal", lambda before, after: True)


def _analog(recorder: Recorder, given: Arguments) -> None:
    condition, high, low, delta = (given.value(k, NUM) for k in (1, 2, 3, 4))
    name = given.signal(0)
    reference = recorder.signals.values.get(name.lower(), 0.0)
    holds: dict[float, Callable[[float], bool]] = {
        1.0: lambda value: value > high, 2.0: lambda value: value <= high,
        3.0: lambda value: value > low, 4.0: lambda value: value <= low,
        5.0: lambda value: low <= value <= high, 6.0: lambda value: not low <= value <= high,
        7.0: lambda value: True,
    }  # fmt: skip
    test = holds.get(condition, lambda value: True)

    def fires(before: float, after: float) -> bool:
        nonlocal reference  # the value at this instruction, or at the interrupt before
        if not (test(after) and abs(after - reference) > delta):
            return False
        reference = after
        return True

    watch(given, 5, name, "signal", fires)


def _timer(recorder: Recorder, given: Arguments) -> None:
    period = given.value(0, NUM)
    least = 0.01 if {"single", "singlesafe"} & set(given.named) else 0.1
    if not period >= least:
        raise RapidError(f"{given.name} of {period:g} s, expected at least {least:g}")
    watch(given, 1, f"ITimer {period:g} s", "timer", lambda before, after: True, period)


def _persistent(recorder: Recorder, given: Arguments) -> None:
    watch(given, 1, given.name_of(0), "persistent", lambda before, after: before != after)


def _elsewhere(recorder: Recorder, given: Arguments) -> None:
    watch(given, len(given) - 1, given.name, "elsewhere", lambda before, after: False)


def _change(change: Callable[[Interrupts, int], object]) -> Run:
    return lambda recorder, given: change(given.interpreter.interrupts, int(given.value(0, NUM)))


def _enable(enabled: bool) -> Run:
    def run(recorder: Recorder, given: Arguments) -> None:
        given.interpreter.interrupts.enabled = enabled

    return run


# ------------------------------------------------------------------------------------------- the path


def _stop_move(recorder: Recorder, given: Arguments) -> None:
    place = given.interpreter.place
    recorder.note(place, "StopMove: the motion stops at the end of the move before")
    recorder.stop_move(place)


def _start_move(recorder: Recorder, given: Arguments) -> None:
    recorder.stopped_at = None


def _store_path(recorder: Recorder, given: Arguments) -> None:
    recorder.note(given.interpreter.place, f"{given.name}: the path is stored at the end of the move before")
    recorder.stored.append(recorder.stopped_at)
    recorder.stopped_at = None


def _restore_path(recorder: Recorder, given: Arguments) -> None:
    recorder.stopped_at = recorder.stored.pop() if recorder.stored else None


def _clear_path(recorder: Recorder, given: Arguments) -> None:
    recorder.note(given.interpreter.place, f"{given.name}: the move before is made to its end")


# ------------------------------------------------------------------------------------------- settings


def _conf(name: str) -> Run:
    def run(recorder: Recorder, given: Arguments) -> None:
        recorder.settings = recorder.settings._replace(**{name: "off" not in given})

    return run


def _acc_set(recorder: Recorder, given: Arguments) -> None:
    share = given.value(0, NUM)
    if not share > 0:
        raise RapidError(f"AccSet {share:g}, expected percent above 0")
    recorder.settings = recorder.settings._replace(acceleration=min(max(share, 20.0), 100.0) / 100)


def _vel_set(recorder: Recorder, given: Arguments) -> None:
    share, most = given.value(0, NUM), given.value(1, NUM)
    if not (share > 0 and most > 0):
        raise RapidError(f"VelSet {share:g}, {most:g}, expected percent and mm/s above 0")
    recorder.settings = recorder.settings._replace(override=min(share, 100.0) / 100, speed_max=most)


def _grip_load(recorder: Recorder, given: Arguments) -> None:
    load = given.value(0, "loaddata")
    if not load["mass"] >= 0:
        raise RapidError(f"a load of {load['mass']:g} kg, expected at least 0")
    recorder.settings = recorder.settings._replace(load=load)


def _displacement_set(recorder: Recorder, given: Arguments) -> None:
    recorder.settings = recorder.settings._replace(displacement=given.value(0, "pose"))


def _displacement_off(recorder: Recorder, given: Arguments) -> None:
    recorder.settings = recorder.settings._replace(displacement=None)


# --------------------------------------------------------------------------------------------- outputs


def _write_signal(value: float | None = None) -> Run:
    def run(recorder: Recorder, given: Arguments) -> None:
        name = given.signal(0)
        new = value
        if new is None:
            new = given.value("dvalue", "dnum") if "dvalue" in given else given.value(1, NUM)
        recorder.note(given.interpreter.place, f"{given.name} {name} (logged)")
        recorder.signals.write(name, float(new))

    return run


def _invert(recorder: Recorder, given: Arguments) -> None:
    name = given.signal(0)
    recorder.note(given.interpreter.place, f"{given.name} {name} (logged)")
    recorder.signals.write(name, 1.0 - recorder.signals.values.get(name.lower(), 0.0))


def _pulse(recorder: Recorder, given: Arguments) -> None:
    name = given.signal(0)
    recorder.note(given.interpreter.place, f"{given.name} {name} (logged)")
    before = recorder.signals.values.get(name.lower(), 0.0)
    for value in (1.0 - before, before):
        recorder.signals.write(name, value)


# --------------------------------------------------------------------------------------------- operator


def _write(recorder: Recorder, given: Arguments) -> None:
    recorder.note(given.interpreter.place, f"{given.name}: {given.texts()}")


def _read_key(recorder: Recorder, given: Arguments) -> None:
    question = given.value(1, STRING)
    keys = {text: k - 1.0 for k in range(2, len(given)) if (text := given.value(k, STRING))}
    given.give("breakflag", 0.0)
    given.write(0, ask_number(recorder, given, question, min(keys.values(), default=1.0), keys))


def _read_number(recorder: Recorder, given: Arguments) -> None:
    given.write(0, ask_number(recorder, given, given.value(1, STRING), 0.0))


def _message_box(recorder: Recorder, given: Arguments) -> None:
    texts = " ".join(given.value(k, STRING) for k in range(len(given)))
    recorder.note(given.interpreter.place, f"{given.name}: {texts}")
    if "result" in given:
        given.give("result", ask_number(recorder, given, texts, *buttons(given)))


# --------------------------------------------------------------------------------------------- program


def _exit_cycle(recorder: Recorder, given: Arguments) -> None:
    raise Left(f"{given.name} in line {given.interpreter.place[1]}", restarts=True)


def _add(sign: float | None) -> Run:
    def run(recorder: Recorder, given: Arguments) -> None:
        before = given.interpreter.typed(given.cell(0).value, float, NUM)
        by = given.value(1, "dnum") if sign is None else sign
        given.write(0, rounded(before + by, before))

    return run


def _call_by_var(recorder: Recorder, given: Arguments) -> None:
    given.interpreter.call_procedure(f"{given.value(0, STRING)}{given.value(1, NUM):g}")


def _book_error(recorder: Recorder, given: Arguments) -> None:
    numbers = given.interpreter.error_numbers
    given.write(0, numbers.setdefault(given.name_of(0).lower(), 1000.0 + len(numbers)))


def _err_raise(recorder: Recorder, given: Arguments) -> None:
    given.interpreter.raise_number(given.interpreter.read(_named(given)[1]))


def _raise_to_user(recorder: Recorder, given: Arguments) -> None:
    present = given.interpreter.frame.handling  # type: ignore[union-attr]
    given.interpreter.raise_number(given.optional("errornumber", NUM, present or 0.0))


def _try_int(recorder: Recorder, given: Arguments) -> None:
    value = given.value(0, "dnum")
    if value != round(value):
        raise RapidError(f"TryInt: {text_of(value)} is not whole", number="err_int_notval")


def _no_retry_limit(recorder: Recorder, given: Arguments) -> None:
    recorder.most_retries = float("inf")


def _clock(recorder: Recorder, given: Arguments) -> None:
    cell, word = given.cell(0), given.name.lower()
    elapsed, since = given.opaque(0, tuple, (0.0, None))
    now = recorder.now()
    elapsed += 0.0 if since is None else now - since
    running = given.interpreter.running_clocks
    if word == "clkstart":
        cell.value = elapsed, now
        running.add(id(cell))
    else:
        cell.value = (elapsed, None) if word == "clkstop" else (0.0, None if since is None else now)
        if word == "clkstop":
            running.discard(id(cell))


def _alias(recorder: Recorder, given: Arguments) -> None:
    node = given.expression(0)
    is_name = isinstance(node, st.Variable) and given.interpreter.find(node.name) is None
    name = given.signal(0) if is_name else given.interpreter.evaluate(node)
    given.cell(1).value = Signal(name if isinstance(name, str) else given.signal(0))


def _named(given: Arguments) -> tuple[str, Cell | Part]:
    """Return the name in the first argument, and the data object of this name."""
    name = given.value(0, STRING)
    try:
        node = expression_of(name)
        return node.name, given.interpreter.cell(node)
    except (RapidError, AttributeError):
        sentence = f"{given.name}: there is no data {text_of(name)}"
        raise RapidError(sentence, "name", number="err_sym_access") from None


def _get_data(recorder: Recorder, given: Arguments) -> None:
    given.write(1, given.interpreter.read(_named(given)[1]))


def _set_data(recorder: Recorder, given: Arguments) -> None:
    name, cell = _named(given)
    value = given.interpreter.evaluate(given.expression(1), cell.type, cell.dimensions)
    given.interpreter.write(cell, name, value)


# ---------------------------------------------------------------------------------------------- table


def names(text: str) -> tuple[str, ...]:
    """Return the names in a text."""
    return tuple(text.split())


def _without_effect(recorder: Recorder, given: Arguments) -> None:
    reason = next(reason for name, reason in WITHOUT_EFFECT.items() if name.lower() == given.name.lower())
    recorder.note_without_effect(given.interpreter.place, f"{given.name} ({reason})")


def _refused(text: str, reason: str) -> dict[str, Instruction]:
    def run(recorder: Recorder, given: Arguments) -> None:
        raise RapidError(f"{given.name} is refused: {reason}", "refusal")

    return {name: Instruction((), run) for name in text.split()}


def _same(text: str, arguments: str, run: Run) -> dict[str, Instruction]:
    return {name: Instruction(names(arguments), run) for name in text.split()}


WITHOUT_EFFECT = {
    name: reason
    for reason, text in {
        "its data keeps its value": "ReadCfgData GetSysData ReadErrData GetTrapData",
        "there is one task here":
        "SyncMoveOn SyncMoveOff SyncMoveUndo SyncMoveSuspend SyncMoveResume WaitSyncTask",
        "it moves no axis of the arm":
        "MoveExtJ IndAMove IndCMove IndDMove IndRMove IndReset ActUnit DeactUnit",
        "the given modules count": "Load UnLoad StartLoad WaitLoad CancelLoad EraseModule",
        "it changes nothing in the plan":
        "SingArea MotionSup PathResol SoftAct SoftDeact EOffsOn EOffsOff EOffsSet PathAccLim WorldAccLim "
        "CirPathMode SpeedRefresh TuneServo TuneReset SpeedLimAxis SpeedLimCheckPoint MotionPlannerMode "
        "DynamicSetup CornerPathWarning CorrCon CorrDiscon CorrClear FricIdInit MechUnitLoad "
        "HollowWristReset MotionProcessModeSet DitherAct DitherDeact SetLeadThrough",
        "world zones are not watched":
        "WZBoxDef WZSphDef WZCylDef WZHomeJointDef WZLimJointDef WZLimSup WZDOSet WZEnable WZDisable WZFree",
        "triggers are not set":
        "TriggIO TriggEquip TriggInt TriggSpeed TriggRampAO TriggCheckIO TriggStopProc TriggDataReset",
        "paths are not recorded": "PathRecStart PathRecStop PathRecMoveBwd PathRecMoveFwd StepBwdPath",
        "the program goes on": "Stop Break SystemStopAction WarmStart WaitRob StopMoveReset ProcerrRecovery",
        "the controller is not changed":
        "IOEnable IODisable IOBusState IOBusStart WriteCfgData SetSysData SetAllDataVal SetDataSearch Save "
        "WriteVar TextTabInstall SkipWarn ReportWarning CamFlush EGMReset",
    }.items()
    for name in text.split()
}  # fmt: skip
"""Instructions that are accepted and do nothing in a check, with what that means."""

INSTRUCTIONS: dict[str, Instruction] = {
    **MOVES,
    # settings of the motion
    "ConfL": Instruction((), _conf("conf_l")),
    "ConfJ": Instruction((), _conf("conf_j")),
    "AccSet": Instruction(names("Acc Ramp"), _acc_set),
    "VelSet": Instruction(names("Override Max"), _vel_set),
    "GripLoad": Instruction(names("Load"), _grip_load),
    "PDispOn": Instruction(names("ProgPoint Tool"), displacement_on),
    "PDispSet": Instruction(names("DispFrame"), _displacement_set),
    "PDispOff": Instruction((), _displacement_off),
    # waits
    "WaitTime": Instruction(names("Time"), _wait_time),
    "WaitUntil": Instruction(names("Cond"), _wait_until),
    **_same("WaitDI WaitDO WaitGI WaitGO WaitAI WaitAO", "Signal Value", _wait_signal),
    "WaitTestAndSet": Instruction(names("Object"), lambda recorder, given: given.write(0, True)),
    # outputs
    **_same("SetDO SetAO SetGO", "Signal Value", _write_signal()),
    "Set": Instruction(names("Signal"), _write_signal(1.0)),
    "Reset": Instruction(names("Signal"), _write_signal(0.0)),
    "InvertDO": Instruction(names("Signal"), _invert),
    "PulseDO": Instruction(names("Signal"), _pulse),
    "AliasIO": Instruction(names("FromSignal ToSignal"), _alias),
    # operator
    **_same("TPWrite", "String", _write),
    **_same("ErrWrite ErrLog TPErase TPShow UIShow", "", _write),
    "TPReadFK": Instruction(names("TPAnswer TPText TPFK1 TPFK2 TPFK3 TPFK4 TPFK5"), _read_key),
    **_same("TPReadNum TPReadDnum", "TPAnswer TPText", _read_number),
    "UIMsgBox": Instruction((), _message_box),
    # interrupts and the path
    **_same("ISignalDI ISignalDO", "Signal TriggValue Interrupt", _digital),
    **_same("ISignalGI ISignalGO", "Signal Interrupt", _group),
    **_same("ISignalAI ISignalAO", "Signal Condition HighValue LowValue DeltaValue Interrupt", _analog),
    "ITimer": Instruction(names("Time Interrupt"), _timer),
    "IPers": Instruction(names("Name Interrupt"), _persistent),
    **_same("IVarValue IError IRMQMessage", "", _elsewhere),
    "IDelete": Instruction(names("Interrupt"), _change(Interrupts.delete)),
    "ISleep": Instruction(names("Interrupt"), _change(lambda one, number: one.asleep.add(number))),
    "IWatch": Instruction(names("Interrupt"), _change(lambda one, number: one.asleep.discard(number))),
    "IDisable": Instruction((), _enable(False)),
    "IEnable": Instruction((), _enable(True)),
    "StopMove": Instruction((), _stop_move),
    **_same("StartMove StartMoveRetry", "", _start_move),
    "StorePath": Instruction((), _store_path),
    "RestoPath": Instruction((), _restore_path),
    "ClearPath": Instruction((), _clear_path),
    # files and bytes
    **data.INSTRUCTIONS,
    # program and data
    "ExitCycle": Instruction((), _exit_cycle),
    "Add": Instruction(names("Name AddValue"), _add(None)),
    "Incr": Instruction(names("Name"), _add(1.0)),
    "Decr": Instruction(names("Name"), _add(-1.0)),
    "Clear": Instruction(names("Name"), lambda recorder, given: given.write(0, 0.0)),
    **_same("ClkStart ClkStop ClkReset", "Clock", _clock),
    "CallByVar": Instruction(names("Name Number"), _call_by_var),
    "BookErrNo": Instruction(names("ErrorName"), _book_error),
    "ErrRaise": Instruction(names("ErrorName ErrorId"), _err_raise),
    "RaiseToUser": Instruction((), _raise_to_user),
    "TryInt": Instruction(names("DataObj"), _try_int),
    "ResetRetryCount": Instruction((), _no_retry_limit),
    "GetDataVal": Instruction(names("Object Value"), _get_data),
    "SetDataVal": Instruction(names("Object Value"), _set_data),
    **dict.fromkeys(WITHOUT_EFFECT, Instruction((), _without_effect)),
    **_refused(
        "SocketCreate SocketConnect SocketBind SocketListen SocketAccept SocketSend SocketReceive "
        "SocketClose SocketSendTo SocketReceiveFrom",
        "it needs a live controller: `irb-twin abb serve` runs it with a client",
    ),
    **_refused(
        "RMQFindSlot RMQSendMessage RMQReadWait RMQGetMessage "
        "RMQGetMsgData RMQEmptyQueue RMQSendWait RMQGetMsgHeader",
        "it needs a live controller",
    ),
    **_refused(
        "EGMGetId EGMSetupUC EGMSetupAI EGMSetupAO EGMSetupGI EGMSetupLTAPP EGMActJoint EGMActPose "
        "EGMActMove EGMRunJoint EGMRunPose EGMMoveL EGMMoveC EGMStop EGMStreamStart EGMStreamStop "
        "EGMWaitCond",
        "EGM is not planned; `irb-twin abb serve` runs it with a client",
    ),
}  # fmt: skip
"""Instructions by their names."""


def instructions_for(
    recorder: Recorder, known: Mapping[str, Instruction] = INSTRUCTIONS
) -> dict[str, Callable[[Arguments], None]]:
    """Return the instructions by their names in lower case, as an interpreter calls them."""
    return functions_for(recorder, known)
