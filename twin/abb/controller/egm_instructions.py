"""Instructions for EGM in a RAPID program, as settings of the guidance.

`EGMSetupUC` sets the mode, the device and CommTimeout, `EGMAct...` and `EGMRun...` the other settings; what
they do not set is a system parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from twin.abb.controller.egm import TaskSession
from twin.abb.controller.tasks import LiveRecorder
from twin.abb.egm.guidance.settings import GuidanceSettings
from twin.abb.rapid.arguments import Arguments
from twin.abb.rapid.frames import frame_of
from twin.abb.rapid.moves import MOVES
from twin.abb.rapid.planning import plan
from twin.abb.rapid.targets import object_frame, tool_frame
from twin.abb.rapid.values import NUM, PREDEFINED, STATES, STRING
from twin.base.arrays import Floats
from twin.base.errors import EgmError, RapidError
from twin.physics.rotations.rotations import pose_vector
from twin.physics.trajectories.joint_trajectories import Trajectory

MODES = {"Joint": "joint", "Pose": "pose", "PathCorr": "path"}
"""Guidance modes by the switch of `EGMSetupUC`."""

ACT_NUMBERS = {
    "lpfilter": "lp_filter", "samplerate": "sample_rate", "maxposdeviation": "max_pos_deviation",
    "maxspeeddeviation": "max_speed_deviation",
}  # fmt: skip
RUN_NUMBERS = {
    "condtime": "cond_time", "rampintime": "ramp_in_time", "rampouttime": "ramp_out_time",
    "poscorrgain": "pos_corr_gain",
}  # fmt: skip
"""Settings by the names of optional arguments."""

JOINTS = ("j1", "j2", "j3", "j4", "j5", "j6")
AXES = ("x", "y", "z", "rx", "ry", "rz")
FRAMES = {"egm_frame_base": "base", "egm_frame_tool": "tool", "egm_frame_wobj": "wobj",
          "egm_frame_world": "world"}  # fmt: skip
STOPS = {"egm_stop_hold": "hold", "egm_stop_ramp_down": "ramp_down"}
MOST = 1e9
"""Largest number of a setting; programs write larger ones for infinity."""


@dataclass(eq=False)
class Identity:
    """Value of an egmident that EGMSetupUC has set up.

    Attributes:
        settings: settings of EGMSetupUC.
        device: name of the device in lower case.
        active: settings of the last EGMAct, None before.
    """

    settings: GuidanceSettings
    device: str
    active: GuidanceSettings | None = None


class EgmInstructions:
    """Instructions and functions for EGM.

    Args:
        recorder: recorder of the task.
    """

    def __init__(self, recorder: LiveRecorder) -> None:
        self._recorder = recorder

    def instructions(self) -> Mapping[str, Callable[[Arguments], None]]:
        """Return the instructions as an interpreter calls them."""

        def ignore(given: Arguments) -> None:
            pass

        return {
            "egmreset": self._reset, "egmgetid": ignore, "egmsetupuc": self._setup,
            "egmactjoint": self._act_joint, "egmactpose": self._act_pose, "egmactmove": self._act_move,
            "egmrunjoint": self._run_joint, "egmrunpose": self._run_pose, "egmstop": self._stop,
            "egmmovel": self._move("MoveL"), "egmmovec": self._move("MoveC"),
            "egmstreamstart": self._start_stream, "egmstreamstop": self._stop_stream,
        }  # fmt: skip

    def functions(self) -> Mapping[str, Callable[[Arguments], Any]]:
        """Return the functions as an interpreter calls them."""
        return {"egmgetstate": self._state}

    # ------------------------------------------------------------------------------ identity and setup

    def _reset(self, given: Arguments) -> None:
        if given.opaque(0, Identity, None) is not None:
            if self._recorder.egm.guides:
                self._end_guidance(GuidanceSettings(stop="hold"))
            self._recorder.egm.close()
            given.cell(0).value = None

    def _start_stream(self, given: Arguments) -> None:
        found = self._found(given)
        changes = {"mode": "joint", **self._numbers(given, {"samplerate": "sample_rate"})}
        settings = self._changed(given, found.settings, changes)
        if not self._recorder.egm.guides:
            self._open(settings, found.device)

    def _stop_stream(self, given: Arguments) -> None:
        if not self._recorder.egm.guides:
            self._recorder.egm.close()

    def _found(self, given: Arguments) -> Identity:
        found = given.opaque(0, Identity, None)
        if found is None:
            raise RapidError(f"{given.name} needs EGMSetupUC of {given.name_of(0)} before", "value")
        return found

    def _state(self, given: Arguments) -> float:
        found = given.opaque(0, Identity, None)
        state = "disconnected" if found is None else "running" if self._recorder.egm.guides else "connected"
        return float(STATES.index(f"egm_state_{state}"))

    def _setup(self, given: Arguments) -> None:
        modes = [mode for word, mode in MODES.items() if word.lower() in given]
        if len(modes) != 1:
            raise RapidError(f"{given.name} needs one of \\Joint, \\Pose, \\PathCorr", "value")
        changes: dict[str, Any] = {"mode": modes[0]}
        if "commtimeout" in given:
            changes["comm_timeout"] = min(given.value("commtimeout", NUM), MOST)
        settings = self._changed(given, self._recorder.egm.devices.parameters, changes)
        given.cell(1).value = Identity(settings, given.value(3, STRING).lower())

    def _changed(
        self, given: Arguments, settings: GuidanceSettings, changes: Mapping[str, Any]
    ) -> GuidanceSettings:
        try:
            return replace(settings, **changes)
        except EgmError as error:
            raise RapidError(f"{given.name}: {error}", "value") from None

    def _numbers(self, given: Arguments, names: Mapping[str, str]) -> dict[str, Any]:
        found: dict[str, Any] = {name: min(given.value(word, NUM), MOST) for word, name in names.items()
                                 if word in given}  # fmt: skip
        if "sample_rate" in found:
            found["sample_rate"] = int(found["sample_rate"])
        return found

    # ------------------------------------------------------------------------------------- activation

    def _activate(self, given: Arguments, mode: str, changes: dict[str, Any]) -> None:
        found = given.opaque(0, Identity, None)
        if found is None or found.settings.mode != mode:
            word = next(word for word, one in MODES.items() if one == mode)
            raise RapidError(f"{given.name} needs EGMSetupUC of {given.name_of(0)} with \\{word}", "value")
        tool = given.optional("tool", "tooldata", PREDEFINED["tool0"].value)
        tool = tool.changed(tload=given.optional("tload", "loaddata", tool["tload"]))
        if "wobj" in given:
            changes["wobj"] = _frame_text(object_frame(given.value("wobj", "wobjdata")))
        settings = self._changed(given, found.settings, {**changes, **self._numbers(given, ACT_NUMBERS)})
        found.active = settings
        self._recorder.finish()
        session = self._open(settings, found.device)
        self._recorder.unit.change_load(tool, self._recorder.settings.load)
        session.use(settings, tool_frame(tool))

    def _open(self, settings: GuidanceSettings, device: str) -> TaskSession:
        if self._recorder.arm is None:
            raise RapidError(f"the task {self._recorder.name} moves no arm", "refusal")
        try:
            return self._recorder.egm.open(self._recorder.task, device, settings)
        except EgmError as error:
            raise RapidError(str(error), "refusal") from None

    def _act_joint(self, given: Arguments) -> None:
        windows = [self._window(given, word) if word in given else 0.5 for word in JOINTS]
        self._activate(given, "joint", {"cond_window": ",".join(map(repr, windows))})

    def _act_pose(self, given: Arguments) -> None:
        changes: dict[str, Any] = {}
        for words, name in ((AXES[:3], "cond_window_mm"), (AXES[3:], "cond_window")):
            windows = {self._window(given, word) for word in words if word in given}
            if len(windows) > 1:
                raise RapidError(f"{given.name}: expected equal windows of {', '.join(words)}", "refusal")
            for window in windows:
                changes[name] = window if name == "cond_window_mm" else repr(window)
        for place, name in ((1, "corr_frame"), (3, "sensor_frame")):
            frame = given.value(place, "pose")
            changes[name] = _frame_text(frame_of(frame))
            kind = STATES[int(given.value(place + 1, NUM))]
            if kind not in FRAMES:
                raise RapidError(f"{given.name}: {kind.upper()} is not supported", "refusal")
            changes[f"{name}_type"] = FRAMES[kind]
        self._activate(given, "pose", changes)

    def _act_move(self, given: Arguments) -> None:
        self._activate(given, "path", {})

    def _window(self, given: Arguments, word: str) -> float:
        window = given.value(word, "egm_minmax")
        low, high = window["min"], window["max"]
        if low != -high or not high >= 0:
            raise RapidError(f"\\{word} of {given.name}: expected [-w,w], got [{low:g},{high:g}]", "refusal")
        return min(high, MOST)

    # ---------------------------------------------------------------------------------------- guidance

    def _run_joint(self, given: Arguments) -> None:
        self._run(given, "joint", JOINTS)

    def _run_pose(self, given: Arguments) -> None:
        self._run(given, "pose", AXES)

    def _run(self, given: Arguments, mode: str, axes: tuple[str, ...]) -> None:
        chosen = [word for word in axes if word in given]
        if not chosen:
            raise RapidError(f"{given.name} has no switch {_switches(axes)}, so nothing would move", "value")
        names = [word.removeprefix("j") for word in chosen]
        changes = {
            **self._numbers(given, RUN_NUMBERS),
            "axes": None if len(chosen) == len(axes) else ",".join(names),
            "no_wait_cond": "nowaitcond" in given, "stop": self._stop_mode(given),
        }  # fmt: skip
        settings = self._settings(given, mode, changes)
        place = given.interpreter.place
        self._recorder.finish()
        self._report(given, self._guide(settings, place, None))

    def _move(self, name: str) -> Callable[[Arguments], None]:
        def run(given: Arguments) -> None:
            settings = self._settings(given, "path", {})
            if "nocorr" in given:
                raise RapidError(f"\\NoCorr of {given.name} is not supported", "refusal")
            given.required = given.required[1:]
            recorder, unit = self._recorder, self._recorder.unit
            MOVES[name].run(recorder, given)
            moves = recorder.guided_moves
            if moves[-1].stops:
                assert recorder.arm is not None
                segments = list(recorder.arm.segments)
                recorder.forget_moves()
                planned = recorder.task.aside(lambda: plan(unit.robot, segments, list(moves), unit.limits))
                self._report(given, self._guide(settings, given.interpreter.place, planned.motion))

        return run

    def _stop(self, given: Arguments) -> None:
        active = self._found(given).active
        if active is None:
            raise RapidError(f"{given.name}: EGM of {given.name_of(0)} is not active", "value")
        changes = {**self._numbers(given, RUN_NUMBERS), "stop": self._stop_mode(given)}
        settings = self._changed(given, active, changes)
        if fault := self._end_guidance(settings):  # of an instruction with \NoWaitCond, which no handler gets
            raise RapidError(fault, "refusal")

    def _end_guidance(self, settings: GuidanceSettings) -> str:
        """Stop the guidance; return a fault, "" for none."""
        session = self._recorder.egm.session
        if session is None or not session.guides:
            return ""
        session.end_guidance(settings)
        return self._awaited(session)

    def _guide(self, settings: GuidanceSettings, place: tuple[str, int], path: Trajectory | None) -> str:
        """Guide the arm, to the end unless the settings do not wait; return a fault, "" for none."""
        session = self._recorder.egm.session
        if session is None or session.settings.mode != settings.mode:
            raise RapidError(f"needs an EGMAct instruction for {settings.mode} guidance before", "value")
        if session.guides:
            raise RapidError("a client guides the arm already: EGMStop must stand before", "value")
        self._recorder.unit.mark(*place)
        self._recorder.task.aside(lambda: session.begin(settings, path))
        if settings.no_wait_cond and settings.mode != "path":
            return ""
        return self._awaited(session)

    def _awaited(self, session: TaskSession) -> str:
        self._recorder.wait_until(lambda: not session.guides)
        return session.fault()

    def _settings(self, given: Arguments, mode: str, changes: Mapping[str, Any]) -> GuidanceSettings:
        settings = self._found(given).active
        if settings is None or settings.mode != mode:
            raise RapidError(f"{given.name} needs an EGMAct instruction for {mode} guidance before", "value")
        return self._changed(given, settings, changes)

    def _stop_mode(self, given: Arguments) -> str:
        kind = STATES[int(given.value(1, NUM))]
        if kind not in STOPS:
            raise RapidError(f"{given.name}: expected EGM_STOP_HOLD or EGM_STOP_RAMP_DOWN", "value")
        return STOPS[kind]

    def _report(self, given: Arguments, fault: str) -> None:
        """Raise the error of a guidance that ended with a fault."""
        if fault.startswith("ERR_UDPUC_COMM"):
            given.interpreter.raise_error("err_udpuc_comm", fault.partition(": ")[2])
        elif fault:
            raise RapidError(fault, "refusal")


def _frame_text(T: Floats) -> str:
    """Return a pose in the form of the settings: m and a unit quaternion."""
    return ",".join(map(repr, pose_vector(T).tolist()))


def _switches(axes: tuple[str, ...]) -> str:
    return f"\\{axes[0].upper()} ... \\{axes[-1].upper()}" if axes == JOINTS else "\\x ... \\rz"
