"""Client of ros-industrial's abb_driver, which speaks the simple message protocol over two sockets."""

import select
import socket
import struct
from typing import NamedTuple

JOINT, POINT, STATUS = 10, 11, 13
REQUEST, REPLY = 2, 3
START, END, STOP = -1, -3, -4


class Status(NamedTuple):
    """Status of the robot, in the order of the message."""

    drives_powered: int
    e_stopped: int
    error_code: int
    in_error: int
    in_motion: int
    mode: int
    motion_possible: int


class DriverClient:
    """Client that reads while the cycles of a virtual controller are run.

    Attributes:
        joints: (t, six angles in [rad]) of each state message.
        status: the last status.
    """

    def __init__(self, cycle, time, motion, state):
        self._cycle, self._time = cycle, time
        self._motion, self._state = (
            socket.create_connection(("127.0.0.1", port), timeout=5.0) for port in (motion, state)
        )
        self._motion.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._bytes = b""
        self.joints, self.status = [], None

    def close(self):
        self._motion.close()
        self._state.close()

    def run(self, seconds):
        """Run cycles, and read the state."""
        end = self._time() + seconds
        while self._time() < end - 1e-9:
            self._cycle()
            while select.select([self._state], [], [], 0.0)[0]:
                self._bytes += self._state.recv(4096)
            while len(self._bytes) >= 4 and len(self._bytes) >= 4 + (size := _size(self._bytes)):
                self._take(self._bytes[4 : 4 + size])
                self._bytes = self._bytes[4 + size :]

    def _take(self, message):
        kind = struct.unpack("<3i", message[:12])[0]
        if kind == JOINT:
            self.joints.append((self._time(), struct.unpack("<6f", message[16:40])))
        elif kind == STATUS:
            self.status = Status(*struct.unpack("<7i", message[12:40]))

    def send_point(self, sequence, q, duration):
        """Send a point of a trajectory, q in [rad], and run cycles until the reply."""
        message = struct.pack("<3i", POINT, REQUEST, 0) + struct.pack("<i", sequence)
        message += struct.pack("<12f", *q, 0.0, 0.0, 0.0, 0.0, 0.1, duration)
        self._motion.sendall(struct.pack("<I", len(message)) + message)
        for _ in range(100):
            self.run(4e-3)
            if select.select([self._motion], [], [], 0.0)[0]:
                break
        reply = self._motion.recv(4096)
        assert struct.unpack("<3i", reply[4:16]) == (POINT, REPLY, 1)

    def send_trajectory(self, points, step):
        """Send the points of a trajectory, which are a time apart."""
        for k, q in enumerate(points):
            self.send_point(START if k == 0 else END if k == len(points) - 1 else k, q, step)

    def stop(self):
        """Send STOP."""
        self.send_point(STOP, [0.0] * 6, 0.0)


def _size(data):
    return struct.unpack("<I", data[:4])[0]
