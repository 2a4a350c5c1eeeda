"""Record of the messages and answers of a session."""

from collections import deque

import numpy as np

from twin.abb.egm.wire.messages import RobotMessage, SensorMessage
from twin.base.arrays import Floats
from twin.physics.rotations.rotations import pose_vector


class StreamRecord:
    """Record of the last cycles of a session, as arrays for its log.

    Args:
        joints: number of joints of the robot.
        mode: guidance mode of the robot.
        cycles: number of cycles that are recorded.
    """

    def __init__(self, joints: int, mode: str, cycles: int) -> None:
        self._place, self._speed = {"joint": (joints, joints), "pose": (7, 6), "path": (3, 0)}[mode]
        self._rows: deque[tuple] = deque(maxlen=max(1, cycles))

    def add(self, t: float, message: RobotMessage, answer: SensorMessage | None) -> None:
        """Add a cycle: its start t, in [s], the message sent, and the answer taken, if any."""
        place, speed = np.full(self._place, np.nan), np.full(self._speed, np.nan)
        seqno = -1
        if answer is not None:
            seqno = -1 if answer.seqno is None else answer.seqno
            pose = None if answer.T is None else pose_vector(answer.T)
            for row, parts in (
                (place, (answer.q, pose, answer.path_correction)),
                (speed, (answer.qd, answer.twist)),
            ):
                for part in parts:  # each mode sets at most one of them
                    if part is not None:
                        row[:] = part
        status = (int(message.state), message.converged, message.utilization or 0.0)
        self._rows.append((t, message.seqno, answer is not None, seqno, place, speed, *status))

    def arrays(self) -> dict[str, Floats]:
        """Return arrays with one row per cycle.

        - `egm_t`: start of the cycle, in [s].
        - `egm_robot_seqno`: sequence number of the robot's message.
        - `egm_taken`: whether an answer was taken; `egm_seqno`: its sequence number, -1 if missing.
        - `egm_reference`, `egm_speed`: references of the answer, NaN if missing.  In joint mode they are (n,)
          in [rad] and [rad/s]; in pose mode (7,) `[x y z a b c d]`, in [m], and (6,) `[v; omega]`, in
          [m/s, rad/s]; in path mode (3,) in [m] and (0,).
        - `egm_state`, `egm_converged`, `egm_utilization`: status in the robot's message.
        """
        columns = [
            ("t", float), ("robot_seqno", np.int64), ("taken", bool), ("seqno", np.int64),
            ("reference", float, (self._place,)), ("speed", float, (self._speed,)),
            ("state", np.int64), ("converged", bool), ("utilization", float),
        ]  # fmt: skip
        table = np.array(list(self._rows), dtype=columns)
        return {f"egm_{name}": table[name].copy() for name in table.dtype.names or ()}
