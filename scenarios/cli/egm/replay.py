"""`irb-twin egm replay`: a log sent to a robot, as its client would."""

from dataclasses import dataclass
from pathlib import Path

from scenarios.cli.arguments import Call, Command, WrongUse, argument, option
from scenarios.cli.egm.addresses import LAST_PORT
from scenarios.cli.output import console, print_to_stderr
from twin.egm.wire.channel import HOST, PORT


@dataclass(frozen=True)
class Replay(Command):
    """Send the references of a log to a robot whose EGM messages come here.

    First slowly from where the robot is to where the log begins, then the positions and speeds of the log
    at the times of the robot's messages, then the last position until the robot is there.

    A robot ends its instruction once it was within the convergence window for CondTime, 1 s by default,
    and one that follows closely is within it all the time: give it a CondTime that is longer than the
    approach and the log. MaxSpeedDeviation, 1 deg/s by default, is the speed of the joints at most.

    The exit status is 0; 1 if the robot did not come to the end of the log; 2 for wrong use, a port in
    use, no robot within --wait, or one that the log does not suit.
    """

    usage = "irb-twin egm replay LOG [options]"
    examples = """examples:
  irb-twin egm serve --cond-time 60 --max-speed-deviation 100 --position-gain 20 --runs 1
  irb-twin egm replay run.npz
  irb-twin egm replay run.npz --port 6511 --approach 5 --hold 60
"""

    log: Path = argument("a log, .npz", "LOG")
    port: int = option(PORT, "to listen on", "N")
    host: str = option(
        HOST,
        f"own address to listen on; robots on other machines reach 0.0.0.0 (default {HOST}: this machine "
        "alone)",
        "ADDRESS",
    )
    wait: float = option(60.0, "for the robot's first message (default 60)", "SECONDS")
    approach: float = option(
        10.0, "speed of the fastest joint on the way to where the log begins (default 10)", "DEG_S"
    )
    patience: float = option(
        30.0,
        "how long the robot may take to come to the start, and to the end, after it was sent there "
        "(default 30)",
        "SECONDS",
    )
    hold: float = option(
        float("inf"),
        "go on at the end until the robot ends its instruction, for so long at most (default: however long "
        "that is); a robot that is left alone before stops with an error",
        "SECONDS",
    )

    def _check(self) -> None:
        """Raise `WrongUse` where a number cannot be."""
        if not self.hold >= 0.0:
            raise WrongUse(f"--hold {self.hold:g}: expected 0 or more")
        for name in ("wait", "approach", "patience"):
            if not 0.0 < getattr(self, name) < float("inf"):
                raise WrongUse(f"--{name} {getattr(self, name):g}: expected a number above 0")
        if not 0 < self.port <= LAST_PORT:
            raise WrongUse(f"--port {self.port}: expected 1 to {LAST_PORT}")

    def run(self, call: Call) -> int:
        """Send the log, from its beginning to its end."""
        self._check()

        import numpy as np

        from twin.egm.client import EgmClient
        from twin.egm.log_replay import replay
        from twin.logs.log import Log

        log = Log.load(self.log)
        page = console()
        with EgmClient(self.port, self.host) as client:
            page.print(
                f"waiting for a robot that sends to port {self.port} of {self.host}; then {self.approach:g} "
                f"deg/s to where the log begins, and {log.t[-1] - log.t[0]:.3f} s of the log",
                highlight=False, soft_wrap=True,
            )  # fmt: skip
            done = replay(
                client, log, approach=float(np.radians(self.approach)), patience=self.patience,
                hold=self.hold, wait=self.wait,
            )  # fmt: skip
        joint = int(np.argmax(done.deviation))
        told = f"{done.messages} answers, {done.duration:.3f} s of the log"
        if done.duration > 0.0:
            beside = np.degrees(done.deviation[joint])
            told += f"; what the robot commanded was at most {beside:.3g} deg beside it (joint {joint + 1})"
        page.print(told, highlight=False, soft_wrap=True)
        if done.trouble:
            print_to_stderr(done.trouble)
        return 1 if done.trouble else 0
