"""Third-party EGM clients in processes of their own."""

import json
import socket
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).with_name("egm_client_process.py")
CLIENTS = ("abb_robot_client.egm", "ABBRobotEGM.egm")


class Client:
    """Process of a client, which serves one session after another."""

    def __init__(self, module):
        self.process = subprocess.Popen(
            [sys.executable, CLIENT, module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(timeout=20) == 0

    def listen(self, method, stream):
        """Start a session of the client and return its port."""
        self.process.stdin.write(json.dumps({"method": method, "stream": stream}) + "\n")
        self.process.stdin.flush()
        self.port = json.loads(self.process.stdout.readline())
        return self.port

    def over(self):
        """End the session and return what the client received and sent."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as robot:
            robot.sendto(b"", ("127.0.0.1", self.port))
        return json.loads(self.process.stdout.readline())
