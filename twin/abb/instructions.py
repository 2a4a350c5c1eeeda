"""Instructions and functions that do more on a virtual controller than in a check of a program."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from twin.abb import sockets
from twin.abb.egm import Leader
from twin.abb.egm_instructions import EgmInstructions
from twin.errors import RapidError
from twin.rapid import functions, instructions
from twin.rapid.arguments import Arguments
from twin.rapid.functions import Function, with_recorder
from twin.rapid.moves import Instruction
from twin.rapid.values import NUM, PREDEFINED, STRING, Record

if TYPE_CHECKING:
    from twin.abb.live_recorder import LiveRecorder

PULSE = 0.2
"""Default length of a pulse, in [s]."""

# ------------------------------------------------------------------------------------------------ path


def _stop_move(recorder: LiveRecorder, given: Arguments) -> None:
    controller = recorder.controller
    controller.held = True
    recorder.task.wait(lambda: controller.motion.rests)


def _start_move(recorder: LiveRecorder, given: Arguments) -> None:
    recorder.controller.held = False


def _clear_path(recorder: LiveRecorder, given: Arguments) -> None:
    controller = recorder.controller
    held, controller.held = controller.held, True
    recorder.task.wait(lambda: controller.motion.rests)
    controller.clear_path()
    controller.held = held


def _store_path(recorder: LiveRecorder, given: Arguments) -> None:
    controller = recorder.controller
    held, controller.held = controller.held, True
    recorder.task.wait(lambda: controller.motion.rests)
    controller.motion.store()
    recorder.store_moves()
    controller.held = held


def _restore_path(recorder: LiveRecorder, given: Arguments) -> None:
    motion = recorder.controller.motion
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
    recorder.controller.report(recorder.task.settings.name, f"{given.name}: {given.texts()}")


def _error_write(recorder: LiveRecorder, given: Arguments) -> None:
    """Write a line, and an event with five arguments: a header, a reason, and three more."""
    texts = [given.value(k, STRING) for k in range(len(given))]
    code, type_ = (80003, 1) if "i" in given else (80002, 2) if "w" in given else (80001, 3)
    recorder.controller.events.add(code, *texts, *[""] * (5 - len(texts)), type=type_)
    _write(recorder, given)


def _message_box(recorder: LiveRecorder, given: Arguments) -> None:
    texts = " ".join(given.value(k, STRING) for k in range(len(given)))
    given.give("result", functions.ask_number(recorder, given, texts, *functions.buttons(given)))


def _stop(recorder: LiveRecorder, given: Arguments) -> None:
    recorder.finish()
    controller = recorder.controller
    controller.report(recorder.task.settings.name, f"{given.name} in line {given.interpreter.place[1]}")
    controller.stop()
    recorder.task.hand_over(lambda: controller.running)


def _test_and_set(recorder: LiveRecorder, given: Arguments) -> None:
    cell = given.cell(0)
    recorder.task.wait(lambda: not cell.value)
    cell.value = True


def _speed(recorder: LiveRecorder, given: Arguments) -> None:
    recorder.controller.override = min(max(given.value(0, NUM), 0.0), 100.0) / 100


OUTPUTS = "SetDO", "SetAO", "SetGO", "Set", "Reset", "InvertDO"

INSTRUCTIONS: dict[str, Instruction] = {
    **{
        name: Instruction(known.names, _at_the_arm(known.run))  # type: ignore[arg-type]
        for name, known in instructions.INSTRUCTIONS.items()
        if name in OUTPUTS
    },
    **sockets.INSTRUCTIONS,
    **{
        name: Instruction(tuple(arguments.split()), run)  # type: ignore[arg-type]
        for name, arguments, run in (
            ("StopMove", "", _stop_move), ("StartMove", "", _start_move), ("StartMoveRetry", "", _start_move),
            ("StopMoveReset", "", _start_move), ("ClearPath", "", _clear_path),
            ("StorePath", "", _store_path), ("RestoPath", "", _restore_path),
            ("PulseDO", "Signal", _at_the_arm(_pulse)),
            ("TPWrite", "String", _write), ("ErrWrite", "", _error_write), ("ErrLog", "", _write),
            ("UIMsgBox", "", _message_box), ("Stop", "", _stop),
            ("Break", "", _stop), ("WaitTestAndSet", "Object", _test_and_set),
            ("SpeedRefresh", "Override", _speed),
        )
    },
}  # fmt: skip
"""Instructions by their names."""


# ------------------------------------------------------------------------------------------- functions


def _target(recorder: LiveRecorder, given: Arguments) -> Record:
    tool = given.optional("tool", "tooldata", PREDEFINED["tool0"].value)
    work_object = given.optional("wobj", "wobjdata", PREDEFINED["wobj0"].value)
    return recorder.controller.kinematics.target(tool, work_object, recorder.controller.arm.q)


def _joints(recorder: LiveRecorder, given: Arguments) -> Record:
    return recorder.controller.kinematics.joints(recorder.controller.arm.q)


def _system(recorder: LiveRecorder, given: Arguments) -> str:
    if "lanip" in given:
        return recorder.controller.network.bind
    return "RobotWare_6.0_virtual" if "swversion" in given else ""


def _of(compute: Callable[[LiveRecorder], Any]) -> Function:
    return with_recorder("", lambda recorder, given: compute(recorder))  # type: ignore[arg-type]


FUNCTIONS: dict[str, Function] = {
    "CRobT": with_recorder("", _target),  # type: ignore[arg-type]
    "CPos": with_recorder("", lambda recorder, given: _target(recorder, given)["trans"]),  # type: ignore[arg-type]
    "CJointT": with_recorder("", _joints),  # type: ignore[arg-type]
    "IsStopMoveAct": _of(lambda recorder: recorder.controller.held),
    "CSpeedOverride": _of(lambda recorder: 100.0 * recorder.controller.override),
    "GetSysInfo": with_recorder("", _system),  # type: ignore[arg-type]
    "GetTaskName": _of(lambda recorder: recorder.task.settings.name),
    "UIClientExist": _of(lambda recorder: True),
    "TaskRunMec": _of(lambda recorder: recorder.arm is not None),
    "TaskRunRob": _of(lambda recorder: recorder.arm is not None),
    "OpMode": _of(lambda recorder: PREDEFINED["op_auto"].value),
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
    return {**found, **_egm(recorder).instructions()}


def functions_for(recorder: LiveRecorder) -> Mapping[str, Callable[[Arguments], Any]]:
    """Return the functions by their names in lower case, as the interpreter of a task calls them."""
    found = functions.functions_for(recorder, {**functions.FUNCTIONS, **FUNCTIONS})
    return {**found, **_egm(recorder).functions()}


def _egm(recorder: LiveRecorder) -> EgmInstructions:
    return EgmInstructions(recorder.controller.egm.devices.parameters, Leader(recorder), recorder)
