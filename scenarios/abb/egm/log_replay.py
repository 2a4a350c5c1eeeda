"""`irb-twin egm replay`: send a log to a robot as its client."""

from pathlib import Path

from scenarios.abb.egm.addresses import LAST_PORT
from scenarios.options import argument, option
from scenarios.shell.output import console, print_to_stderr
from scenarios.shell.parser import Call, Command
from twin.abb.egm.wire.channel import HOST, PORT
from twin.base.errors import WrongUse


class Replay(Command):
    """Send the references of a log to a robot that sends its EGM messages to this command.

    The robot first moves slowly from its present position to the first position of the log. It then gets the
    positions and speeds of the log at the times of its messages, and finally the last position until it has
    arrived.

    A robot ends its instruction after it was within the convergence window for CondTime, 1 s by default. A
    robot that follows closely is within it all the time: set CondTime longer than the approach and the log.
    MaxSpeedDeviation, 1 deg/s by default, limits the speed of the joints.

    The exit status is 0; 1 if the robot did not reach the end of the log; 2 for wrong use, a port in use, no
    robot within --wait, or a robot with another number of joints.
    """

    usage = "irb-twin egm replay LOG [options]"
    examples = """examples:
  irb-twin egm serve --cond-time 60 --max-speed-deviation 100 --position-gain 20 --runs 1
  irb-twin egm replay run.npz
  irb-twin egm replay run.npz --port 6511 --approach 5 --hold 60
  irb-twin egm replay run.npz --learned learned.npz
"""

    log: Path = argument("log file, .npz", "LOG")
    learned: Path | None = option(
        None, "correct the references by an input that irb-twin learn wrote for the same motion", "FILE.npz"
    )
    port: int = option(PORT, "UDP port to listen on", "N")
    host: str = option(
        HOST,
        "local address to listen on; 0.0.0.0 accepts robots on other machines "
        f"(default {HOST}: this machine only)",
        "ADDRESS",
    )
    wait: float = option(60.0, "longest wait for the robot's first message (default 60)", "SECONDS")
    approach: float = option(
        10.0, "speed of the fastest joint on the way to the first position of the log (default 10)", "DEG_S"
    )
    patience: float = option(
        30.0,
        "longest wait for the robot to arrive at the start, and at the end, of the log (default 30)",
        "SECONDS",
    )
    hold: float = option(
        float("inf"),
        "hold the last position until the robot ends its instruction, at most this time (default: no limit); "
        "without answers a robot stops with an error",
        "SECONDS",
    )

    def _check(self) -> None:
        """Raise `WrongUse` for a number outside its range."""
        if not self.hold >= 0.0:
            raise WrongUse(f"--hold {self.hold:g}: expected 0 or more")
        for name in ("wait", "approach", "patience"):
            if not 0.0 < getattr(self, name) < float("inf"):
                raise WrongUse(f"--{name} {getattr(self, name):g}: expected a number above 0")
        if not 0 < self.port <= LAST_PORT:
            raise WrongUse(f"--port {self.port}: expected 1 to {LAST_PORT}")

    def run(self, call: Call) -> int:
        """Send the log and print the result."""
        self._check()

        import numpy as np

        from twin.abb.egm.client import EgmClient, replay
        from twin.data.logs.log import Log
        from twin.studies.learning.learning_controller import LearnedInput

        log = Log.load(self.log)
        learned = None if self.learned is None else LearnedInput.load(self.learned)
        page = console()
        with EgmClient(self.port, self.host) as client:
            page.print(
                f"waiting for a robot that sends to port {self.port} of {self.host}; then approach at "
                f"{self.approach:g} deg/s, and {log.t[-1] - log.t[0]:.3f} s of the log",
                soft_wrap=True,
            )  # fmt: skip
            result = replay(
                client, log, approach=float(np.radians(self.approach)), patience=self.patience,
                hold=self.hold, wait=self.wait, learned=learned,
            )  # fmt: skip
        joint = int(np.argmax(result.deviation))
        summary = f"sent {result.messages} answers, {result.duration:.3f} s of the log"
        if result.duration > 0.0:
            deviation = np.degrees(result.deviation[joint])
            summary += (
                f"; the robot's commanded angles deviated by at most {deviation:.3g} deg (joint {joint + 1})"
            )
        page.print(summary, soft_wrap=True)
        if result.trouble:
            print_to_stderr(result.trouble)
        return 1 if result.trouble else 0
