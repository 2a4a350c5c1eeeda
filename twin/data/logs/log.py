"""Record of a run, sample by sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from twin.base.arrays import Floats
from twin.base.atomic_file import atomic_write
from twin.base.errors import RobotError, TwinError
from twin.base.wings import from_above
from twin.data.logs.annotations import Payloads, ProgramLines, Surroundings, payload_of_row
from twin.data.logs.archive import KINDS, read_arrays, robot_from_record, robot_to_record
from twin.physics.dynamics.environment import Environment
from twin.physics.dynamics.equation_of_motion import PlantState, advance_period, inverse_dynamics
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.robot.limits import Violation, violations
from twin.physics.robot.robot import Robot
from twin.physics.rotations.rotations import continuous_quaternions, pose_vector, rigid_poses

if TYPE_CHECKING:
    from pandas import DataFrame

    from twin.base.notebook import Page, Plot


STANDS_FOR = {
    "tau_joint": "tau", "q_motor": "q", "qd_motor": "qd", "q_seen": "q_motor", "qd_seen": "qd_motor",
}  # fmt: skip
"""Array that each of these is identical to where it was not recorded, as in files without drives."""


@dataclass(frozen=True, eq=False)
class Log:
    """Record of a closed loop: N samples, one per control period, of n joints.

    Attributes:
        robot: robot that the plant simulated.
        controller: name of the controller.
        time_step: time step of the engine, in [s].
        steps_per_period: number of engine steps in a control period.
        t: (N,) time, in [s].
        q_ref, qd_ref, qdd_ref: (N, n) reference, in [rad], [rad/s], [rad/s^2].
        q, qd: (N, n) positions and speeds of the plant, in [rad], [rad/s].
        tau: (N, n) torques of the motors at the joints from each sample to the next, in [N m].  Like
            `tau_demand` they are not finite in the last sample of a run that ended for this reason.
        tau_demand: (N, n) torques that the controller demanded, in [N m].
        saturated: (N, n) true where the delivered torque differs from the demand.
        loop_gap: (N,) largest gap of the closed loops in the steps up to each sample, in [m].
        tau_joint: (N, n) torques that the drives exerted on the arm in the step after each sample, in [N m]:
            `tau` less the share of rotors and friction, or the torque of the springs.  The last sample, which
            has no step, repeats the one before.
        q_motor, qd_motor: (N, n) positions and speeds of the motors in joint units, in [rad], [rad/s].
        q_seen, qd_seen: (N, n) their measurements, which the controller received, in [rad], [rad/s].
        T_flange_tool: (4, 4) pose of the tool on the flange; by default the flange itself.
        pose, pose_ref: (N, 7) tool pose `[x y z a b c d]` of `q` and `q_ref`.  The signs of the quaternions
            are continuous in time and equal in both.  Computed at the first access.
        model_drives: drive mode of the controller's model; by default that of the robot.
        law_signals: signals (N, n) of the controller by name, such as the disturbance that `dob` observes.
        payloads: payloads of a run in which they change, see `twin.logs.parts`; `robot` then has the first.
        surroundings: what acted on the tool from outside; `None` for nothing.
        program: lines of the program that led the run.
        arrays: further arrays by name, such as the cycles of a stream.

    With ideal drives `tau_joint` is `tau`.  With rigid joints `q_motor` is `q` and `qd_motor` is `qd`.
    Without sensors `q_seen` is `q_motor` and `qd_seen` is `qd_motor`.  In these cases both names refer to the
    same array, which is stored once in files.

    Example:
        >>> import twin
        >>> from scenarios.gravity_hold import GravityHold
        >>> log = GravityHold(duration=0.1).run().log
        >>> log.q.shape, log.controller, log.robot.name
        ((101, 6), 'computed_torque', 'irb140')
    """

    robot: Robot
    controller: str
    time_step: float
    steps_per_period: int
    t: np.ndarray
    q_ref: np.ndarray
    qd_ref: np.ndarray
    qdd_ref: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    tau_demand: np.ndarray
    saturated: np.ndarray
    loop_gap: np.ndarray
    tau_joint: np.ndarray = None  # type: ignore[assignment]
    q_motor: np.ndarray = None  # type: ignore[assignment]
    qd_motor: np.ndarray = None  # type: ignore[assignment]
    q_seen: np.ndarray = None  # type: ignore[assignment]
    qd_seen: np.ndarray = None  # type: ignore[assignment]
    T_flange_tool: np.ndarray = field(default_factory=lambda: np.eye(4))
    model_drives: str = ""
    law_signals: Mapping[str, np.ndarray] = field(default_factory=dict)
    payloads: Payloads | None = None
    surroundings: Surroundings | None = None
    program: ProgramLines | None = None
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.model_drives:
            object.__setattr__(self, "model_drives", self.robot.drive_mode)
        for name, same in STANDS_FOR.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, getattr(self, same))
        for name in MAPPINGS:
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __getstate__(self) -> dict[str, Any]:
        # A `MappingProxyType` cannot be pickled.
        return self.__dict__ | {name: dict(getattr(self, name)) for name in MAPPINGS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {name: MappingProxyType(state[name]) for name in MAPPINGS})

    @property
    def pose(self) -> np.ndarray:  # noqa: D102
        return self._poses[0]

    @property
    def pose_ref(self) -> np.ndarray:  # noqa: D102
        return self._poses[1]

    @cached_property
    def _poses(self) -> tuple[np.ndarray, np.ndarray]:
        pose, pose_ref = (np.full((len(self.t), 7), np.nan) for _ in range(2))
        for q, series in ((self.q, pose), (self.q_ref, pose_ref)):
            finite = np.isfinite(q).all(axis=1)  # a run that diverged may end with NaN
            poses = pose_vector(forward_kinematics(self.robot, q[finite], self.T_flange_tool))
            poses[:, 3:] = continuous_quaternions(poses[:, 3:])
            series[finite] = poses
        if len(pose) and pose[0, 3:] @ pose_ref[0, 3:] < 0:
            pose[:, 3:] *= -1.0
        return pose, pose_ref

    @property
    def wrench(self) -> np.ndarray:
        """Wrench (N, 6) of the environment `[f; mu]` at the tool in the step after each sample, base axes."""
        return np.zeros((len(self.t), 6)) if self.surroundings is None else self.surroundings.wrench

    @property
    def environment(self) -> Environment | None:
        """Pushes on the tool, and surfaces that it could touch; `None` for none."""
        rows = self.surroundings
        return rows and Environment(rows.pushes, rows.surfaces, self.T_flange_tool)

    @property
    def drives(self) -> str:
        """Drive mode of the run, one of `twin.robot.drives.drives.MODES`."""
        return self.robot.drive_mode

    @property
    def tau_motor(self) -> np.ndarray:
        """Torques (N, n) at the shafts of the motors, N^-T tau, in [N m].

        Raises:
            RobotError: the drives of the robot are not known.
        """
        if self.robot.drives is None:
            raise RobotError(
                f"robot {self.robot.name!r} has no drives, so the torques of its motors are not known"
            )
        return np.linalg.solve(self.robot.drives.motor_matrix.T, self.tau.T).T

    @property
    def torque_before(self) -> np.ndarray:
        """Torques (N, n) of the drives on the arm in the step before each sample, in [N m].

        Before sample 0 it is the torque that holds the arm.  With several steps in a control period, it is
        that of the first step of the period before.
        """
        first = inverse_dynamics(self.robot.arm, self.q[0], self.qd[0], np.zeros(self.robot.n))
        return np.concatenate([first[None], self.tau_joint[:-1]])

    def model_residuals(self) -> PlantState:
        """Return the state of the plant less that of the model, one control period after samples 0 to N-2.

        The robot's dynamics advance each sample's state under the logged torque.  The difference of the
        states, each (N-1, n), is round-off if plant and model are the same robot.  `tau_joint` is that of the
        first step after samples 0 to N-2.
        """
        if len(pieces := self.parts()) > 1:
            residuals = [piece.model_residuals() for piece in pieces]
            return PlantState(*map(np.concatenate, zip(*residuals, strict=True)))
        logged = [getattr(self, name) for name in PlantState._fields]
        states = tuple(state[:-1] for state in logged[:4])
        model = advance_period(
            self.robot,
            states,
            self.tau[:-1],
            self.time_step,
            self.steps_per_period,
            self.torque_before[:-1],
            self.environment,
            self.t[:-1],
        )
        plant = (*(state[1:] for state in logged[:4]), self.tau_joint[:-1])
        return PlantState(*map(np.subtract, plant, model))

    def model_residual(self) -> float | None:
        """Return the largest residual of a joint's speed, in [rad/s]; `None` for fewer than two samples."""
        return float(np.max(np.abs(self.model_residuals().qd))) if len(self.t) > 1 else None

    def violations(self) -> tuple[Violation, ...]:
        """Return the largest violations of the joints' ranges and speed limits, if any.

        The engine has no stops at the ends of the ranges, so a joint can leave its range.
        """
        return violations(self.robot, self.t, self.q, self.qd)

    def identical(self, other: Log) -> bool:
        """Return whether two logs agree in every bit of every sample."""
        return (
            all(_same(getattr(self, name), getattr(other, name)) for name in RECORDED)
            and self.added_arrays.keys() == other.added_arrays.keys()
            and all(_same(array, other.added_arrays[name]) for name, array in self.added_arrays.items())
        )

    @property
    def added_arrays(self) -> dict[str, np.ndarray]:
        """Arrays beside the record of every run, by the names that tables and files use."""
        found = {LAW_SIGNAL + name: values for name, values in self.law_signals.items()}
        for part in (self.payloads, self.surroundings, self.program):
            found |= {} if part is None else vars(part)
        return found | dict(self.arrays)

    def is_recorded(self, name: str) -> bool:
        """Return whether an array was recorded, and is not the one that it stands for."""
        return getattr(self, name) is not getattr(self, STANDS_FOR.get(name, ""), None)

    def is_sampled(self, array: np.ndarray) -> bool:
        """Return whether an array (N,) or (N, k) that a scenario added has numbers for each sample."""
        return array.dtype.kind in "biuf" and array.ndim in (1, 2) and len(array) == len(self.t)

    def samples(self, selected: np.ndarray) -> Log:
        """Return the selected samples; the selection is a mask (N,) or indices."""
        shared: dict[int, np.ndarray] = {}  # by identity, so that arrays that are shared stay shared

        def part(array: np.ndarray) -> np.ndarray:
            return shared.setdefault(id(array), array[selected])

        def added(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
            return {name: part(array) if self.is_sampled(array) else array for name, array in arrays.items()}

        arrays = {item.name: getattr(self, item.name) for item in fields(self)}
        cut = {
            name: part(array)
            for name, array in arrays.items()
            if isinstance(array, np.ndarray) and name != "T_flange_tool"
        }
        return replace(
            self, **cut, arrays=added(self.arrays), law_signals=added(self.law_signals),
            payloads=self.payloads and replace(self.payloads, load=part(self.payloads.load)),
            surroundings=self.surroundings
            and replace(self.surroundings, wrench=part(self.surroundings.wrench)),
            program=self.program
            and replace(self.program, line=part(self.program.line), file=part(self.program.file)),
        )  # fmt: skip

    def parts(self) -> tuple[Log, ...]:
        """Return the parts of a log with a constant payload, in order; the log itself without changes.

        Each part ends with the first sample of the next one, which is the state after its last step.

        Example:
            >>> import twin
            >>> from scenarios.gravity_hold import GravityHold
            >>> log = GravityHold(duration=0.1).run().log
            >>> twin.logs.parts(log)[0] is log
            True
        """
        if self.payloads is None:
            return (self,)
        load = self.payloads.load
        starts = [0, *(np.flatnonzero(np.diff(load)) + 1), len(load)]
        found = []
        for first, last in pairwise(starts):
            piece = self.samples(np.arange(first, min(last + 1, len(load))))
            payload = payload_of_row(self.payloads.loads[load[first]])
            found.append(replace(piece, robot=self.robot.with_payload(payload), payloads=None))
        return tuple(found)

    def __repr__(self) -> str:
        seconds = f"{self.t[0]:.6g} to {self.t[-1]:.6g} s" if len(self.t) else "no time"
        return f"<Log of {self.robot.name} under {self.controller}: {len(self.t)} samples, {seconds}>"

    def _repr_html_(self) -> str:
        return self._compared()._repr_html_()

    def _compared(self) -> Any:
        return from_above("twin.studies.views.comparison.compare")({self.controller: self})

    def plot(self, what: str = "error", joints: Sequence[str] | None = None) -> Plot:
        """Return a figure of the log over time, as `irb-twin plot` draws it; a notebook shows it.

        Args:
            what: "error", "torque", "speed", "position", "pose", "force", "moment", "wrench", or the name
                of a signal of a controller, as "disturbance".
            joints: names of the joints to draw; `None` for all, and for the error also that of the tool.

        Raises:
            ValueError: an unknown quantity.
            UnknownNameError: the robot has no such joint.
        """
        return self._compared().plot(what, joints)

    def replay(self) -> Page:
        """Return a three-dimensional replay with a time slider; a notebook shows and stores it.

        Raises:
            TwinError: no sample has a finite position, or a shape of the robot cannot be drawn.
        """
        return self._compared().replay()

    def to_frame(self) -> DataFrame:
        """Return the log as a pandas table, one row per sample; `twin.logs.columns` describes the columns.

        Raises:
            TwinError: pandas is not installed (`pip install 'irb-twin[tables]'`).
        """
        return from_above("twin.data.logs.columns.frame")(self)

    def save(self, path: str | Path, more: Mapping[str, np.ndarray] = MappingProxyType({})) -> None:
        """Write the log atomically as a NumPy archive, usually `.npz`; as a table if the name says so.

        A name that ends in `.csv` or `.parquet` gets the columns of `twin.logs.columns`, which `load` cannot
        read.

        The archive contains all numbers of the robot.  Its named poses and its shapes are read from its file.

        Args:
            path: path of the file.
            more: further arrays of the archive by name, with a dot in each; `load` ignores them.

        Raises:
            TwinError: `load` would reject the log, or its robot cannot be stored.
            OSError: the file cannot be written.
        """
        self.require_consistent()
        if (suffix := Path(path).suffix.lower()) in (".csv", ".parquet"):
            return from_above(f"twin.data.logs.columns.write_{suffix[1:]}")(path, self)
        content = robot_to_record(self.robot)
        content |= {name: getattr(self, name) for name in RECORDED if self.is_recorded(name)}
        content |= {name: kind(content[name]) for name, (kind, _) in SCALARS.items()}
        content |= {OWN + name: array for name, array in self.added_arrays.items()}
        content[OWN + MODEL_DRIVES] = self.model_drives
        content |= more
        with atomic_write(path) as draft, open(draft, "wb") as file:  # NumPy would append `.npz` to a name
            np.savez(file, **content)

    @staticmethod
    def load(path: str | Path) -> Log:
        """Read a log that `save` wrote; only numbers and text are read, even from a file that was altered.

        Raises:
            TwinError: the file is missing or is not a log.
            UnknownNameError, RobotError: the robot of the log no longer exists.
        """
        try:
            return _log(read_arrays(path))
        except TwinError as error:
            if type(error) is not TwinError:
                raise type(error)(f"the robot of the log {path}: {error}") from error
            reason, cause = str(error), error
        except OSError as error:
            raise TwinError(f"cannot read the log {path}: {error.strerror or error}") from error
        except KeyError as error:
            reason, cause = f"it has no {error}", error
        except Exception as error:  # an altered file can cause any error
            reason, cause = " ".join(str(error).split()) or type(error).__name__, error
        raise TwinError(f"{path} is not a log of this program ({reason})") from cause

    def require_consistent(self) -> None:
        """Check that the arrays of the log can be those of one run.

        Raises:
            TwinError: an array is inconsistent; the message contains its name, its form and the expected one.
        """
        if not 0 < self.time_step < np.inf or not self.steps_per_period >= 1:
            raise TwinError(
                f"expected a time step above 0 s and at least 1 step per period, got {self.time_step} s "
                f"and {self.steps_per_period}"
            )
        N, n = np.size(self.t), self.robot.n
        for name, (shape, kind) in ARRAYS.items():
            expected = tuple({"N": N, "n": n}.get(size, size) for size in shape)
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.shape != expected or array.dtype != kind:
                raise TwinError(
                    f"expected {name} to be {np.dtype(kind)} of shape {expected}, got {_form(array)}"
                )
        if not (N > 0 and np.all(np.isfinite(self.t)) and np.all(np.diff(self.t) > 0)):
            raise TwinError("expected t to have at least one sample and to increase")
        period = self.time_step * self.steps_per_period
        if not np.all(
            np.abs(np.diff(self.t) - period) <= 1e-6 * period + 4 * np.spacing(np.max(np.abs(self.t)))
        ):
            raise TwinError(f"expected times t in steps of the control period, {period:g} s")
        for name, array in self.added_arrays.items():
            if not isinstance(array, np.ndarray) or array.dtype.kind not in KINDS:
                raise TwinError(f"expected {name} to be an array of numbers or text, got {_form(array)}")
        for name, values in self.law_signals.items():
            if values.shape != (N, n):
                raise TwinError(f"expected the signal {name} to be of shape {(N, n)}, got {_form(values)}")
        for part in (self.payloads, self.surroundings, self.program):
            if part is not None:
                part.require_valid(N)


parts = Log.parts

POSES = ("pose", "pose_ref")
MAPPINGS = ("law_signals", "arrays")
PARTS = {"payloads": Payloads, "surroundings": Surroundings, "program": ProgramLines}
MODEL_DRIVES = "model_drives"
ADDED = ("robot", MODEL_DRIVES, *MAPPINGS, *PARTS)
RECORDED = (*(item.name for item in fields(Log) if item.name not in ADDED), *POSES)
OWN, LAW_SIGNAL = "own_", "law_"
"""Prefixes of the names of `Log.added_arrays` in files, and of the controller's signals among them."""
SCALARS = {"controller": (str, "U"), "time_step": (float, "f"), "steps_per_period": (int, "i")}
JOINTS = ("q_ref", "qd_ref", "qdd_ref", "q", "qd", "tau", "tau_demand", *STANDS_FOR)
ARRAYS = {
    "t": (("N",), np.float64),
    **dict.fromkeys(JOINTS, (("N", "n"), np.float64)),
    "saturated": (("N", "n"), np.bool_),
    "loop_gap": (("N",), np.float64),
    **dict.fromkeys(POSES, (("N", 7), np.float64)),
    "T_flange_tool": ((4, 4), np.float64),
}
"""Shape and dtype of each array."""


def _log(arrays: dict[str, np.ndarray]) -> Log:
    """Return the log that consists of these arrays."""
    names = [name for name in RECORDED if name in arrays or name not in (*STANDS_FOR, "T_flange_tool")]
    recorded: dict[str, Any] = {name: arrays[name] for name in names}
    for name, (kind, letter) in SCALARS.items():
        if recorded[name].shape != () or recorded[name].dtype.kind != letter:
            raise TwinError(f"expected {name} to be one {kind.__name__}, got {_form(recorded[name])}")
        recorded[name] = kind(recorded[name])
    added = {name.removeprefix(OWN): array for name, array in arrays.items() if name.startswith(OWN)}
    poses = tuple(recorded.pop(name) for name in POSES)
    robot = robot_from_record(arrays)
    parts: dict[str, Any] = {}
    for name, kind in PARTS.items():
        names = [item.name for item in fields(kind)]
        if all(one in added for one in names):
            parts[name] = kind(*(added.pop(one) for one in names))
    signals = [name for name in added if name.startswith(LAW_SIGNAL)]
    parts["law_signals"] = {name.removeprefix(LAW_SIGNAL): added.pop(name) for name in signals}
    model_drives = str(added.pop(MODEL_DRIVES, ""))
    log = Log(robot=robot, model_drives=model_drives, arrays=added, **parts, **recorded)
    rigid_poses(log.T_flange_tool, "T_flange_tool")
    if "structure" not in arrays and not np.allclose(poses, log._poses, rtol=0, atol=1e-6, equal_nan=True):
        raise RobotError(
            f"{log.robot.name!r} is now another robot: its kinematics does not reproduce the logged "
            "tool poses"
        )
    log.__dict__["_poses"] = poses  # where cached_property looks first
    log.require_consistent()
    return log


def _form(value: object) -> str:
    """Describe the dtype and shape of an array."""
    return f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)


def _same(a: object, b: object) -> bool:
    """Return whether two arrays are bitwise equal, or two scalars equal."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return a == b


SERIES = (
    "t", "q_ref", "qd_ref", "qdd_ref", "q", "qd", "tau", "tau_demand", "saturated", "loop_gap", *STANDS_FOR,
)  # fmt: skip
"""Arrays of a log that have one row per sample."""


class RunningLog:
    """Most recent samples of a run that is recorded in parts.

    Args:
        samples: largest number of samples to store, at least 1.
    """

    def __init__(self, samples: int) -> None:
        if samples < 1:
            raise ValueError(f"expected room for at least 1 sample, got {samples}")
        self._capacity = samples
        self.restart()

    def restart(self) -> None:
        """Discard all parts."""
        self._first: Log | None = None
        self._count = 0
        self._series: dict[str, np.ndarray] = {}

    def add(self, part: Log) -> None:
        """Append the part that follows the previous one; it has the drives and sensors of the first part."""
        if self._first is None:
            self._first = part
            for name in SERIES:
                array = getattr(part, name)
                if part.is_recorded(name):
                    # The system allocates memory only for pages that are written.
                    self._series[name] = np.empty((self._capacity, *array.shape[1:]), array.dtype)
        count = len(part.t)
        stored = min(count, self._capacity)
        rows = np.arange(self._count + count - stored, self._count + count) % self._capacity
        for name, series in self._series.items():
            series[rows] = getattr(part, name)[count - stored :]
        if part.surroundings is not None:
            if "wrench" not in self._series:
                self._series["wrench"] = np.zeros((self._capacity, 6))
            self._series["wrench"][rows] = part.wrench[count - stored :]
        self._count += count

    def log(self, T_flange_tool: Floats, arrays: Mapping[str, np.ndarray]) -> Log | None:
        """Return the stored samples as one log with robot and controller of the first part; `None` if empty.

        Args:
            T_flange_tool: (4, 4) pose of the tool on the flange.
            arrays: arrays to add to the log, by name.
        """
        if self._first is None:
            return None
        rows = np.arange(max(0, self._count - self._capacity), self._count) % self._capacity
        series = {name: array[rows] for name, array in self._series.items()}
        others: dict[str, Any] = {name: None for name in STANDS_FOR if name not in series}
        others["law_signals"] = {}  # the parts have those of their samples alone
        if self._first.surroundings is not None:
            others["surroundings"] = replace(self._first.surroundings, wrench=series.pop("wrench"))
        return replace(self._first, T_flange_tool=T_flange_tool, arrays=arrays, **series, **others)
