"""Instructions of RAPID: moves and settings of the motion, and what is logged, ignored or refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from twin.errors import RapidError
from twin.rapid.program import Arguments, Stopped
from twin.rapid.values import NUM, PREDEFINED, Record, rounded, text_of

if TYPE_CHECKING:
    from twin.rapid.targets import Arm


class Settings(NamedTuple):
    """Settings of the motion that instructions change.

    Attributes:
        conf_j: whether joint moves must reach the configuration of their target (ConfJ).
        conf_l: the same for lines and circles (ConfL).
        acceleration: share of the acceleration, 0 to 1 (AccSet).
        override: share of the programmed speed, 0 to 1 (VelSet).
        speed_max: largest speed of the tool, in mm/s (VelSet).
        load: payload in the gripper (GripLoad).
    """

    conf_j: bool = True
    conf_l: bool = True
    acceleration: float = 1.0
    override: float = 1.0
    speed_max: float = 5000.0
    load: Record = PREDEFINED["load0"].value


class Speed(NamedTuple):
    """Speed of a move: of the tool in mm/s, and of its orientation in degrees/s."""

    tcp: float
    ori: float


@dataclass(frozen=True, eq=False)
class Move:
    r"""Move instruction with its arguments.

    Attributes:
        file: file of the instruction.
        line: line of the instruction.
        name: name of the instruction, such as MoveL.
        kind: "joint", "line" or "circle".
        target: robtarget or jointtarget.
        speed: speed of the tool in mm/s, and of its orientation in degrees/s.
        zone: zonedata; `finep` is a stop.
        tool: tooldata.
        work_object: wobjdata.
        via: robtarget on a circle.
        duration: time of the move in s (`\T`), None if the speed counts.
        settings: settings of the motion.
        routine: name of the routine with the instruction.
    """

    file: str
    line: int
    name: str
    kind: str
    target: Record
    speed: Speed
    zone: Record
    tool: Record
    work_object: Record
    via: Record | None = None
    duration: float | None = None
    settings: Settings = field(default_factory=Settings)
    routine: str = ""

    @property
    def stops(self) -> bool:
        """Whether the arm stops at the target."""
        return self.zone["finep"]


class Pause(NamedTuple):
    """Wait for a time, in s; the arm stands still."""

    file: str
    line: int
    seconds: float


class Note(NamedTuple):
    """Line of a program without an effect on the planned motion."""

    file: str
    line: int
    text: str


class Recorder:
    """Results of a program: its moves and waits in order, and notes.

    Attributes:
        events: moves and pauses.
        notes: what was not done, and what readers should know.
        settings: settings for the next move.
        arm: arm that follows the moves, None if no robot is known.
        limit: largest number of moves, None for no limit.
    """

    def __init__(self, arm: Arm | None, inputs: dict[str, float], answer_after: float, limit: int | None):
        self.events: list[Move | Pause] = []
        self.notes: list[Note] = []
        self.settings = Settings()
        self.arm, self.inputs, self.answer_after, self.limit = arm, inputs, answer_after, limit
        self.moves = 0

    def note(self, place: tuple[str, int], text: str) -> None:
        """Add a note, once for each line and text."""
        if Note(*place, text) not in self.notes:
            self.notes.append(Note(*place, text))

    def pause(self, pause: Pause) -> None:
        """Add a wait."""
        self.events.append(pause)

    def add(self, move: Move) -> None:
        """Add a move.

        Raises:
            Stopped: the largest number of moves is made already.
        """
        if self.limit is not None and self.moves >= self.limit:
            raise Stopped(f"stopped after {self.limit} moves (--moves), before line {move.line}")
        if self.arm is not None:
            self.arm.move(move)
        self.events.append(move)
        self.moves += 1


MOVE_OPTIONS = "V", "T", "Z", "Inpos", "WObj", "TLoad", "NoEOffs", "Conc", "ID", "Corr"
"""Optional arguments of moves."""

IGNORED_OPTIONS = "conc", "id", "corr"
"""Optional arguments that change nothing here, and are noted."""

EXTERNAL = 9e9
"""Value of an external axis that is not there."""


def _checked(record: Record, what: str) -> Record:
    """Return a target without external axes, or refuse it."""
    axes = record["extax"].numbers()
    used = [value for value in axes if abs(value - EXTERNAL) > 1.0 and value != 0.0]
    if used:
        raise RapidError(f"{what} has external axes ({used[0]:g}); only 9E9 is supported", "refusal")
    return record


def _check_options(recorder: Recorder, given: Arguments, triggers: int) -> None:
    """Refuse optional arguments that a move does not have, and note those that change nothing."""
    known = [*MOVE_OPTIONS, *(f"T{k}" for k in range(2, 9) if triggers)]
    for option in given.named:
        if option not in [name.lower() for name in known]:
            raise RapidError(f"{given.name} has no argument \\{option}, it has {', '.join(known)}", "name")
        if option in IGNORED_OPTIONS:
            recorder.note(given.interpreter.place, f"{given.name}: \\{option} is ignored")


def _move(kind: str, *, joints: bool = False, triggers: int = 0) -> Callable[[Recorder, Arguments], None]:
    """Return the function of a move instruction.

    Args:
        kind: joint, line or circle.
        joints: whether the target is a jointtarget.
        triggers: number of arguments of a trigger between speed and zone (TriggL).
    """

    def run(recorder: Recorder, given: Arguments) -> None:
        _check_options(recorder, given, triggers)
        via = None
        if kind == "circle":
            via = _checked(given.value(0, "robtarget"), "the point on the circle")
        first = 0 if via is None else 1
        target = _checked(given.value(first, "jointtarget" if joints else "robtarget"), "the target")
        speeds = given.value(first + 1, "speeddata")
        zone = given.value(first + 2 + triggers, "zonedata")
        tool = given.value(first + 3 + triggers, "tooldata")
        work_object = given.optional("wobj", "wobjdata", PREDEFINED["wobj0"].value)
        v_tcp, v_ori = given.optional("v", NUM, speeds["v_tcp"]), speeds["v_ori"]
        if "z" in given:
            zone = zone.changed(finep=False, pzone_tcp=given.value("z", NUM))
        if "inpos" in given:
            zone = zone.changed(finep=True)
        duration = given.optional("t", NUM, None)
        if "tload" in given:
            tool = tool.changed(tload=given.value("tload", "loaddata"))
        if not v_tcp > 0 or not v_ori > 0:
            raise RapidError(f"the speed is {v_tcp:g} mm/s and {v_ori:g} deg/s, expected more than 0")
        if not tool["robhold"] or work_object["robhold"]:
            raise RapidError("a work object that the robot holds (robhold) is not supported", "refusal")
        if work_object["ufmec"] or not work_object["ufprog"]:
            raise RapidError("a work object on a moving unit is not supported", "refusal")
        if triggers or len(given) > first + 4 + triggers:
            recorder.note(given.interpreter.place, f"{given.name}: the output is logged, not set")
        settings = recorder.settings
        file, line = given.interpreter.place
        recorder.add(
            Move(
                file=file,
                line=line,
                name=given.name,
                kind=kind,
                target=target,
                speed=Speed(min(v_tcp * settings.override, settings.speed_max), v_ori * settings.override),
                zone=zone,
                tool=tool,
                work_object=work_object,
                via=via,
                duration=duration,
                settings=settings,
                routine=given.interpreter.routine,
            )
        )

    return run


def _wait(recorder: Recorder, given: Arguments) -> None:
    seconds = given.value(0, NUM)
    if not seconds >= 0:
        raise RapidError(f"WaitTime of {seconds:g} s, expected at least 0")
    if seconds:
        recorder.pause(Pause(*given.interpreter.place, seconds))


def _answered(recorder: Recorder, given: Arguments) -> None:
    recorder.note(given.interpreter.place, f"{given.name} {given.name_of(0)} (taken as answered)")
    if recorder.answer_after > 0:
        recorder.pause(Pause(*given.interpreter.place, recorder.answer_after))


def _signal(recorder: Recorder, given: Arguments) -> None:
    name = given.name_of(0)
    recorder.note(given.interpreter.place, f"{given.name} {name} (logged)")
    if name and given.interpreter.find(name) is None:
        given.interpreter.signals.setdefault(name.lower(), recorder.inputs.get(name.lower(), 0.0))


def _logged(recorder: Recorder, given: Arguments) -> None:
    recorder.note(given.interpreter.place, f"{given.name} (logged)")


def _write(recorder: Recorder, given: Arguments) -> None:
    values = [given.interpreter.evaluate(one.value) for one in (*given.required, *given.named.values())]
    text = "".join(value if isinstance(value, str) else text_of(value) for value in values)
    recorder.note(given.interpreter.place, f"{given.name}: {text}")


def _conf(name: str) -> Callable[[Recorder, Arguments], None]:
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


def _exit(recorder: Recorder, given: Arguments) -> None:
    _, line = given.interpreter.place
    raise Stopped(f"{given.name} in line {line}" if given.name.lower() == "exitcycle" else "")


def _add(sign: int | None) -> Callable[[Recorder, Arguments], None]:
    def run(recorder: Recorder, given: Arguments) -> None:
        cell = given.cell(0)
        if cell.kind == "CONST":
            raise RapidError(f"{given.name_of(0)} is constant", "type")
        by = given.value(1, NUM) if given.name.lower() == "add" else sign or 0
        cell.value = 0.0 if sign is None and given.name.lower() == "clear" else rounded(cell.value + by)

    return run


def _refused(reason: str) -> Callable[[Recorder, Arguments], None]:
    def run(recorder: Recorder, given: Arguments) -> None:
        raise RapidError(f"{given.name} is refused: {reason}", "refusal")

    return run


def _names(text: str, run: Callable[[Recorder, Arguments], None]) -> dict[str, Callable[..., None]]:
    return dict.fromkeys(text.lower().split(), run)


INSTRUCTIONS: dict[str, Callable[[Recorder, Arguments], None]] = {
    "moveabsj": _move("joint", joints=True),
    "movej": _move("joint"),
    "movel": _move("line"),
    "movec": _move("circle"),
    "movejdo": _move("joint"),
    "moveldo": _move("line"),
    "movecdo": _move("circle"),
    "movejsync": _move("joint"),
    "movelsync": _move("line"),
    "movecsync": _move("circle"),
    "triggj": _move("joint", triggers=1),
    "triggl": _move("line", triggers=1),
    "triggc": _move("circle", triggers=1),
    "waittime": _wait,
    "confl": _conf("conf_l"),
    "confj": _conf("conf_j"),
    "accset": _acc_set,
    "velset": _vel_set,
    "gripload": _grip_load,
    "exitcycle": _exit,
    "add": _add(0),
    "incr": _add(1),
    "decr": _add(-1),
    "clear": _add(None),
    **_names("TPWrite ErrWrite ErrLog TPErase TPShow UIMsgBox Write", _write),
    **_names(
        "WaitDI WaitDO WaitAI WaitAO WaitGI WaitGO WaitUntil WaitRob WaitTestAndSet WaitSyncTask", _answered
    ),
    **_names("SetDO SetAO SetGO Set Reset PulseDO InvertDO AliasIO IOEnable IODisable", _signal),
    **_names(
        "SingArea ClkStart ClkStop ClkReset ActUnit DeactUnit StartMove StopMove StorePath RestoPath "
        "ClearPath MotionSup PathResol SoftAct SoftDeact IDelete IDisable IEnable ISleep IWatch BookErrNo "
        "TriggIO TriggEquip TriggInt TriggSpeed TriggRampAO TriggCheckIO EOffsOff PDispOff PathAccLim "
        "WorldAccLim CirPathMode SpeedRefresh TuneReset WZHomeJointDef SetSysData Rapid_Dummy "
        "ResetRetryCount SkipWarn StartLoad WaitLoad UnLoad CancelLoad Stop Break EGMReset "
        "MotionPlannerMode DynamicSetup",
        _logged,
    ),
    **_names(
        "SocketCreate SocketConnect SocketBind SocketListen SocketAccept SocketSend SocketReceive "
        "SocketClose SocketSendTo SocketReceiveFrom RMQFindSlot RMQSendMessage RMQReadWait RMQGetMessage "
        "RMQGetMsgData RMQEmptyQueue RMQSendWait RMQGetMsgHeader",
        _refused("there is no network here"),
    ),
    **_names(
        "Open Close Rewind ReadRawBytes WriteRawBytes WriteBin WriteAnyBin ReadAnyBin ClearRawBytes "
        "PackRawBytes UnpackRawBytes CopyRawBytes WriteStrBin MakeDir RemoveDir RemoveFile RenameFile "
        "CopyFile Load Save OpenDir CloseDir ReadErrData",
        _refused("there are no files of a controller here"),
    ),
    **_names(
        "SyncMoveOn SyncMoveOff SyncMoveUndo SyncMoveSuspend SyncMoveResume MoveExtJ",
        _refused("only one robot without external axes is planned"),
    ),
    **_names("PDispOn PDispSet EOffsOn EOffsSet", _refused("program displacement is not supported")),
    **_names("SearchL SearchC SearchJ SearchExtJ", _refused("a search ends where a sensor says")),
    **_names(
        "EGMGetId EGMSetupUC EGMSetupAI EGMSetupAO EGMSetupGI EGMSetupLTAPP EGMActJoint EGMActPose "
        "EGMActMove EGMRunJoint EGMRunPose EGMMoveL EGMMoveC EGMStop EGMStreamStart EGMStreamStop "
        "EGMWaitCond",
        _refused("EGM is not planned; `irb-twin egm serve --program` simulates it"),
    ),
    **_names(
        "IPers ISignalDI ISignalDO ISignalAI ISignalAO ISignalGI ITimer IVarValue IError IPathPos",
        _refused("there are no interrupts here"),
    ),
}
"""Functions of the instructions by their names in lower case."""


def instructions_for(recorder: Recorder) -> dict[str, Callable[[Arguments], None]]:
    """Return the instructions as an interpreter calls them."""
    return {name: partial(run, recorder) for name, run in INSTRUCTIONS.items()}
