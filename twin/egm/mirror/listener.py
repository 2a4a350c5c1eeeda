"""The messages of a robot, one by one, as they come to a relay, until they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic
from typing import NamedTuple

import numpy as np

from twin.egm.mirror.relay import TURN, Relay
from twin.egm.wire.messages import RobotMessage
from twin.egm.wire.robot_message import decode_robot
from twin.errors import EgmError

LISTEN = ("127.0.0.1", 6510)
WAIT = 10.0


class Wire(NamedTuple):
    """Where a robot is heard.

    Attributes:
        listen: host and port that it sends to.
        forward: host and port of its client, if its messages are to be passed on.
        answered_at: own host and port towards a client on another machine.
        wait: how long to wait for it, in [s].
    """

    listen: tuple[str, int] = LISTEN
    forward: tuple[str, int] | None = None
    answered_at: tuple[str, int] | None = None
    wait: float = WAIT


class Listener:
    """Hears a robot within its `with` block.

    Attributes:
        relay: that passes on what is heard.

    Args:
        wire: where.

    Raises:
        EgmError: the wait is not above 0; on entering, an address that does not exist or is in use.
    """

    def __init__(self, wire: Wire) -> None:
        if not 0 < wire.wait < np.inf:
            raise EgmError(f"expected to wait for longer than 0 s and not for ever, got {wire.wait:g} s")
        self._wire, self._relay, self._stopped = wire, None, False

    @property
    def relay(self) -> Relay:
        """See above."""
        if self._relay is None:
            raise ValueError("expected a `with` block around it, in which it listens")
        return self._relay

    def __enter__(self) -> Listener:
        listen, forward, answered_at, _ = self._wire
        self._relay = Relay(listen, is_message, forward, answered_at)
        self._relay.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self.relay.__exit__(*failure)

    def stop(self) -> None:
        """Have `messages` end, from any thread."""
        self._stopped = True

    def messages(
        self, malformed: Callable[[], object], until_silent: bool
    ) -> Iterator[tuple[RobotMessage, float]]:
        """Messages, and when they arrived by `time.monotonic`, in [s]; until `stop`.

        Args:
            malformed: called for what is no message.
            until_silent: end, too, when nothing was heard for as long as the robot was waited for.

        Raises:
            EgmError: no robot was heard in time.
        """
        heard, any_yet, wait = monotonic(), False, self._wire.wait
        while not self._stopped:
            copy = self.relay.next(TURN)
            if copy is None:
                if monotonic() - heard <= wait:
                    continue
                if not any_yet:
                    raise EgmError(
                        f"no robot was heard at {self.relay.at} within {wait:g} s: is it guided now, and "
                        "does it send there?"
                    )
                if until_silent:
                    return
                continue
            heard, any_yet = monotonic(), True
            try:
                message = decode_robot(copy.data)
            except EgmError:
                malformed()
            else:
                yield message, copy.arrival


def is_message(data: bytes) -> bool:
    """Whether these are the bytes of a robot's message."""
    try:
        decode_robot(data)
    except EgmError:
        return False
    return True
