"""A robot's stream, heard on the wire and kept as a log.

    with Recording(robot, duration=20.0) as recording:
        recording.run()
    log = recording.stream.log()

The messages may be passed on to the robot's client meanwhile.
"""

from __future__ import annotations

from twin.egm.mirror.listener import LISTEN, WAIT, Listener, Wire
from twin.egm.mirror.relay import Relay
from twin.egm.mirror.smoothing import HALF_A_CYCLE
from twin.egm.mirror.stream_log import LONGEST, StreamLog
from twin.robot.robot import Robot


class Recording:
    """Records a robot, and passes on what it says.

    Attributes:
        stream: what was recorded.
        ended: why it ended, where the stream itself did not.

    Args:
        robot: that sends.
        listen, forward, answered_at, wait: see `twin.egm.mirror.listener.Wire`.
        duration: of the robot's time, in [s]; by default until it is told to stop, an hour at most.
        torque_age: how much older reported torques are than the angles beside them, in cycles, 0 to 1.

    Raises:
        EgmError: a time that cannot be; on entering, an address that does not exist or is in use.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        listen: tuple[str, int] = LISTEN,
        forward: tuple[str, int] | None = None,
        answered_at: tuple[str, int] | None = None,
        wait: float = WAIT,
        duration: float | None = None,
        torque_age: float = HALF_A_CYCLE,
    ) -> None:
        self.stream = StreamLog(robot, LONGEST if duration is None else duration, torque_age)
        self.ended = ""
        self._until_silent, self._guided = duration is not None, forward is not None
        self._listener = Listener(Wire(listen, forward, answered_at, wait))

    @property
    def relay(self) -> Relay:
        """Who listens, within the `with` block."""
        return self._listener.relay

    def __enter__(self) -> Recording:
        self._listener.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self._listener.__exit__(*failure)

    def stop(self) -> None:
        """Have `run` end, from any thread."""
        self._listener.stop()
        self.ended = "told to stop"

    def run(self) -> None:
        """Record until the stream ends, or `stop`.

        A robot that is guided through here is passed on, too, when its stream has broken off.

        Raises:
            EgmError: no robot was heard in time, or it has other joints.
        """
        for message, _ in self._listener.messages(self.stream.malformed, self._until_silent):
            self.stream.take(message)
            if self.stream.ended and not (self._guided and self.stream.broke_off):
                return
        self.ended = self.ended or "the robot fell silent"
