"""Instructions and functions that do more on a virtual controller than in a check of a program."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from typing import Any

from twin.abb.controller import messages, sockets
from twin.abb.controller.egm_instructions import EgmInstructions
from twin.abb.controller.machine import HomeFiles
from twin.abb.controller.motion import Trigger
from twin.abb.controller.tasks import LiveRecorder
from twin.abb.rapid import functions, instructions
from twin.abb.rapid.arguments import Arguments
from twin.abb.rapid.functions import Function, with_recorder
from twin.abb.rapid.moves import Instruction
from twin.abb.rapid.values import NUM, PREDEFINED, STRING, Double, Record
from twin.base.errors import RapidError

PULSE = 0.2
"""Default length of a pulse, in [s]."""

# ------------------------------------------------------------------------------------------------ path


def _stop_move(recorder: LiveRecorder, given: Arguments) -> None:
    recorder.hold()


def _start_move(recorder: LiveRecorder, given: Arguments) -> None:
    recorder.execution.held = False


def _clear_path(recorder: LiveRecorder, given: Arguments) -> None:
    held = recorder.hold()
    recorder.unit.clear_path()
    recorder.execution.held = held


def _store_path(recorder: LiveRecorder, given: Arguments) -> None:
    held = recorder.hold()
    recorder.unit.motion.store()
    recorder.store_moves()
    recorder.execution.held = held


def _restore_path(recorder: LiveRecorder, given: Arguments) -> None:
    motion = recorder.unit.motion
    if not motion.is_stored:
        raise RapidError(f"{given.name}: StorePath must stand before", "value")
    recorder.finish()
    if (off := motion.restore()) > 0.01:
        raise RapidError(
            f"{given.name}: the arm is {off:.3g} rad from the stored path", number="err_pathdist"
        )
    recorder.restore_moves()


# ------------------------------------------------------------------------------- signals, lines, execution


def _at_the_arm(run: Callable[[Any, Arguments], None]) -> Callable[[LiveRecorder, Arguments], None]:
    """Return an instruction that waits until the arm has begun the move before it."""

    def run_later(recorder: LiveRecorder, given: Arguments) -> None:
        recorder.catch_up()
        run(recorder, given)

    return run_later


def _pulse(recorder: LiveRecorder, given: Arguments) -> None:
    name, signals = given.signal(0), recorder.signals
    before = signals.values.get(name.lower(), 0.0)
    signals.write(name, 1.0 if "high" in given else 1.0 - before)
    signals.schedule(given.optional("plength", NUM, PULSE), name, 0.0 if "high" in given else before)


def _write(recorder: LiveRecorder, given: Arguments) -> None:
    recorder.report(f"{given.name}: {given.texts()}")


def _message_box(recorder: LiveRecorder, given: Arguments) -> None:
    texts = " ".join(given.value(k, STRING) for k in range(len(given)))
    given.give("result", functions.ask_number(recorder, given, texts, *functions.buttons(given)))


def _of_files(work: Callable[..., object]) -> Callable[[LiveRecorder, Arguments], None]:
    """Return an instruction that works on files by their names."""

    def run(recorder: LiveRecorder, given: Arguments) -> None:
        assert isinstance(recorder.files, HomeFiles)
        names = [given.value(k, STRING) for k in range(len(given))]
        if reason := recorder.files.work(work, *names):
            given.interpreter.raise_error("err_fileacc", f"{given.name} {', '.join(names)}: {reason}")

    return run


def _wait_rob(recorder: LiveRecorder, given: Arguments) -> None:
    recorder.finish()


def _stop(recorder: LiveRecorder, given: Arguments) -> None:
    recorder.finish()
    recorder.report(f"{given.name} in line {given.interpreter.place[1]}")
    recorder.execution.stop()
    recorder.task.hand_over(lambda: recorder.execution.running)


def _test_and_set(recorder: LiveRecorder, given: Arguments) -> None:
    cell = given.cell(0)
    recorder.wait_until(lambda: not cell.value)
    cell.value = True


def _speed(recorder: LiveRecorder, given: Arguments) -> None:
    recorder.execution.override = min(max(given.value(0, NUM), 0.0), 100.0) / 100


def _motion_sup(recorder: LiveRecorder, given: Arguments) -> None:
    level = given.optional("tunevalue", NUM, 100.0) if "on" in given else 0.0
    if not (1.0 <= level <= 300.0 or "off" in given):
        raise RapidError(r"MotionSup: expected \On, perhaps with \TuneValue of 1 to 300 %, or \Off", "value")
    recorder.unit.level = level


# -------------------------------------------------------------------------------------------- triggers


def _put_trigger(given: Arguments, act: Callable[[], object], lead: float = 0.0) -> None:
    by_time = "time" in given
    before = given.value(1, NUM) * (1.0 if by_time else 1e-3)
    given.cell(0).value = Trigger(act, before, "start" in given, by_time, lead)


def _output(lag: int, value: int) -> Callable[[LiveRecorder, Arguments], None]:
    """Return an instruction that sets an output.

    Args:
        lag: place of the time by which the output comes earlier, 0 without one.
        value: place of the value.
    """

    def run(recorder: LiveRecorder, given: Arguments) -> None:
        names = [given.signal(one) for one in ("dop", "gop", "aop") if one in given]
        wanted, delay = given.value(value, NUM), given.optional("dodelay", NUM, 0.0)

        def act() -> None:
            for name in names:
                recorder.signals.schedule(delay, name, wanted)

        _put_trigger(given, act, given.value(lag, NUM) if lag else 0.0)

    return run


def _interrupt(recorder: LiveRecorder, given: Arguments) -> None:
    interrupts, number = given.interpreter.interrupts, int(given.value(2, NUM))
    _put_trigger(given, lambda: interrupts.interrupt(number))


OUTPUTS = "SetDO", "SetAO", "SetGO", "Set", "Reset", "InvertDO"

INSTRUCTIONS: dict[str, Instruction] = {
    **{
        name: Instruction(known.names, _at_the_arm(known.run))  # type: ignore[arg-type]
        for name, known in instructions.INSTRUCTIONS.items()
        if name in OUTPUTS
    },
    **sockets.INSTRUCTIONS,
    **messages.INSTRUCTIONS,
    **{
        name: Instruction(tuple(arguments.split()), run)  # type: ignore[arg-type]
        for name, arguments, run in (
            ("StopMove", "", _stop_move), ("StartMove", "", _start_move), ("StartMoveRetry", "", _start_move),
            ("StopMoveReset", "", _start_move), ("ClearPath", "", _clear_path),
            ("StorePath", "", _store_path), ("RestoPath", "", _restore_path),
            ("PulseDO", "Signal", _at_the_arm(_pulse)),
            ("TPWrite", "String", _write), ("ErrLog", "", _write), ("WaitRob", "", _wait_rob),
            ("RemoveFile", "", _of_files(os.remove)), ("RemoveDir", "", _of_files(os.rmdir)),
            ("MakeDir", "", _of_files(os.mkdir)), ("RenameFile", "", _of_files(os.rename)),
            ("CopyFile", "", _of_files(shutil.copyfile)),
            ("UIMsgBox", "", _message_box), ("Stop", "", _stop),
            ("Break", "", _stop), ("WaitTestAndSet", "Object", _test_and_set),
            ("SpeedRefresh", "Override", _speed), ("MotionSup", "", _at_the_arm(_motion_sup)),
            ("TriggIO", "TriggData Distance SetValue", _output(0, 2)),
            ("TriggEquip", "TriggData Distance EquipLag SetValue", _output(2, 3)),
            ("TriggInt", "TriggData Distance Interrupt", _interrupt),
        )
    },
}  # fmt: skip
"""Instructions by their names."""


# ------------------------------------------------------------------------------------------- functions


def _target(recorder: LiveRecorder, given: Arguments) -> Record:
    tool = given.optional("tool", "tooldata", PREDEFINED["tool0"].value)
    work_object = given.optional("wobj", "wobjdata", PREDEFINED["wobj0"].value)
    return recorder.unit.kinematics.target(tool, work_object, recorder.unit.arm.q)


def _joints(recorder: LiveRecorder, given: Arguments) -> Record:
    return recorder.unit.kinematics.joints(recorder.unit.arm.q)


def _system(recorder: LiveRecorder, given: Arguments) -> str:
    if "lanip" in given:
        return recorder.network.bind
    return "RobotWare_6.0_virtual" if "swversion" in given else ""


def _next_unit(recorder: LiveRecorder, given: Arguments) -> bool:
    """Give the one mechanical unit, the arm, at the first call."""
    number = given.cell(0)
    if number.value:
        return False
    number.value, given.cell(1).value = 1.0, "ROB_1"
    for name, value in (("tcprob", True), ("noofaxes", float(recorder.unit.robot.n)), ("active", True)):
        given.give(name, value)
    return True


def _motor(recorder: LiveRecorder, given: Arguments) -> float:
    """Return the angle of a motor, in [rad]; that of its joint for an arm whose drives are unknown."""
    robot, axis = recorder.unit.robot, int(given.value(0, NUM))
    if not 1 <= axis <= robot.n:
        given.interpreter.raise_error("err_axis_par", f"there is no axis {axis}")
    drives, q = robot.drives, recorder.unit.arm.q
    return float((q if drives is None else drives.ratio * (drives.coupling @ q))[axis - 1])


def _space(recorder: LiveRecorder, given: Arguments) -> float:
    assert isinstance(recorder.files, HomeFiles)
    total, _, free = recorder.files.disk_usage()
    return Double(total if "total" in given else free)


OP_MODES = {"AUTO": "op_auto", "MANR": "op_man_prog", "MANF": "op_man_test"}
"""Constants of OpMode by the mode of the controller."""


def _of(compute: Callable[[LiveRecorder], Any]) -> Function:
    return with_recorder("", lambda recorder, given: compute(recorder))  # type: ignore[arg-type]


FUNCTIONS: dict[str, Function] = {
    "CRobT": with_recorder("", _target),  # type: ignore[arg-type]
    "CPos": with_recorder("", lambda recorder, given: _target(recorder, given)["trans"]),  # type: ignore[arg-type]
    "CJointT": with_recorder("", _joints),  # type: ignore[arg-type]
    "IsStopMoveAct": _of(lambda recorder: recorder.execution.held),
    "CSpeedOverride": _of(lambda recorder: 100.0 * recorder.execution.override),
    "GetNextMechUnit": with_recorder("ListNumber UnitName", _next_unit),  # type: ignore[arg-type]
    "ReadMotor": with_recorder("Axis", _motor),  # type: ignore[arg-type]
    "FSSize": with_recorder("", _space),  # type: ignore[arg-type]
    "RMQGetSlotName": with_recorder("Slot", messages.slot_name),  # type: ignore[arg-type]
    "GetSysInfo": with_recorder("", _system),  # type: ignore[arg-type]
    "GetTaskName": _of(lambda recorder: recorder.name),
    "UIClientExist": _of(lambda recorder: True),
    "TaskRunMec": _of(lambda recorder: recorder.arm is not None),
    "TaskRunRob": _of(lambda recorder: recorder.arm is not None),
    "OpMode": _of(lambda recorder: PREDEFINED[OP_MODES[recorder.execution.mode]].value),
    "RunMode": _of(lambda recorder: PREDEFINED["run_cont_cycle"].value),
    "CTime": _of(lambda recorder: time.strftime("%H:%M:%S")),
    "CDate": _of(lambda recorder: time.strftime("%Y-%m-%d")),
    "SocketGetStatus": with_recorder("Socket", sockets.status),  # type: ignore[arg-type]
    "SocketPeek": with_recorder("Socket", sockets.peek),  # type: ignore[arg-type]
}
"""Functions by their names."""


def instructions_for(recorder: LiveRecorder) -> Mapping[str, Callable[[Arguments], None]]:
    """Return the instructions by their names in lower case, as the interpreter of a task calls them."""
    found = instructions.instructions_for(recorder, {**instructions.INSTRUCTIONS, **INSTRUCTIONS})
    return {**found, **EgmInstructions(recorder).instructions()}


def functions_for(recorder: LiveRecorder) -> Mapping[str, Callable[[Arguments], Any]]:
    """Return the functions by their names in lower case, as the interpreter of a task calls them."""
    found = functions.functions_for(recorder, {**functions.FUNCTIONS, **FUNCTIONS})
    return {**found, **EgmInstructions(recorder).functions()}
