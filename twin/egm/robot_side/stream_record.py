"""What a robot was sent and what it told, cycle by cycle, as arrays beside its log."""

from __future__ import annotations

from collections import deque

import numpy as np

from twin.arrays import Floats
from twin.egm.wire.messages import RobotMessage, SensorMessage
from twin.spatial.rotations import pose_vector


class StreamRecord:
    """The last cycles of a robot on the wire.

    Args:
        joints: of the robot.
        mode: how it is guided.
        cycles: how many are kept.
    """

    def __init__(self, joints: int, mode: str, cycles: int) -> None:
        self._place, self._speed = {"joint": (joints, joints), "pose": (7, 6), "path": (3, 0)}[mode]
        self._rows: deque[tuple] = deque(maxlen=max(1, cycles))

    def add(self, t: float, message: RobotMessage, answer: SensorMessage | None) -> None:
        """Note a cycle, which began at t, in [s]: what was told in it, and what was taken."""
        place, speed = np.full(self._place, np.nan), np.full(self._speed, np.nan)
        seqno = -1
        if answer is not None:
            seqno = -1 if answer.seqno is None else answer.seqno
            if answer.q is not None:
                place[:] = answer.q
            if answer.qd is not None:
                speed[:] = answer.qd
            if answer.T is not None:
                place[:] = pose_vector(answer.T)
            if answer.twist is not None:
                speed[:] = answer.twist
            if answer.path_correction is not None:
                place[:] = answer.path_correction
        told = (int(message.state), message.converged, message.utilization or 0.0)
        self._rows.append((t, message.seqno, answer is not None, seqno, place, speed, *told))

    def arrays(self) -> dict[str, Floats]:
        """Arrays with a row a cycle.

        `egm_t` when it began, in [s]; `egm_robot_seqno` of the robot's message; `egm_taken` whether an answer
        was taken, `egm_seqno` its number (-1: it had none); `egm_reference` and `egm_speed` what it said, NaN
        where nothing: in joint guidance (n,) in [rad] and [rad/s], in pose guidance (7,) `[x y z a b c d]` in
        [m] and (6,) `[v; omega]`, of path corrections (3,) in [m] and (0,).  `egm_state`, `egm_converged` and
        `egm_utilization` are what the robot told.
        """
        names = ("t", "robot_seqno", "taken", "seqno", "reference", "speed")
        names += ("state", "converged", "utilization")
        kinds = (float, np.int64, bool, np.int64, float, float, np.int64, bool, float)
        columns = zip(*self._rows, strict=True) if self._rows else ((),) * len(names)
        arrays = {
            f"egm_{name}": np.array(column, dtype=kind)
            for name, kind, column in zip(names, kinds, columns, strict=True)
        }
        for name, size in (("egm_reference", self._place), ("egm_speed", self._speed)):
            arrays[name] = arrays[name].reshape(len(self._rows), size)
        return arrays
