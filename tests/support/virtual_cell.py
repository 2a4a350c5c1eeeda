"""Virtual controllers for tests, which are advanced cycle by cycle without a clock."""

import numpy as np

import controllers
from tests.support.egm_wires import CycleByCycle
from twin.abb.controller.controller import VirtualController
from twin.abb.controller.execution import TaskSettings
from twin.abb.egm.robot.guided_arm import GuidedArm
from twin.abb.rapid.language import read_source
from twin.physics.dynamics.environment import Environment, pushes

HEAD = """MODULE M
CONST jointtarget a:=[[0,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]];
CONST jointtarget b:=[[20,10,-10,15,40,-30],[9E9,9E9,9E9,9E9,9E9,9E9]];
CONST jointtarget c:=[[-30,20,-20,15,50,30],[9E9,9E9,9E9,9E9,9E9,9E9]];
VAR num i; VAR num n; VAR intnum wake;
"""
START = np.radians([0.0, 0, 0, 0, 30, 0])


def source(body, more=""):
    return f"{HEAD}{more}\nPROC main()\n{body}\nENDPROC\nENDMODULE\n"


class VirtualCell:
    """Virtual controller that is advanced by a test, without a clock."""

    def __init__(self, robot, settings, start=START, forever=False, starts=True, push=None, **more):
        def law(payload):
            return controllers.make(
                "computed_torque", robot.with_payload(payload), bandwidth=20.0, period=1e-3
            )

        self.lines, world = [], push and Environment(pushes(push))
        self.controller = VirtualController(
            GuidedArm(robot, law(None), start, environment=world), robot, law, settings,
            pace=CycleByCycle(), forever=forever, on_line=self.lines.append, **more,
        )  # fmt: skip
        if starts:
            self.controller.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.controller.close()
        self.controller.arm.close()

    def run(self, seconds=20.0, until=lambda: False):
        """Run cycles to the end of the programs, until something holds, or for a time."""
        for _ in range(round(seconds / 4e-3)):
            if self.controller.execution.has_ended or until():
                return
            self.controller.cycle()

    @property
    def texts(self):
        return [line.sentence.removeprefix("TPWrite: ") for line in self.lines]

    @property
    def log(self):
        return self.controller.log(np.eye(4))


def tasks_of_folder(folder):
    """Return tasks named as the files of a folder; T_ROB1 moves the arm, others are SEMISTATIC."""
    return [
        TaskSettings(
            path.stem, read_source(path).modules, "NORMAL" if "T_ROB" in path.stem else "SEMISTATIC",
            moves=path.stem == "T_ROB1",
        )
        for path in sorted(folder.glob("*.mod"))
    ]  # fmt: skip


def titles_of_tasks(controller):
    """Return the titles of the events of tasks, the oldest first."""
    return [one.event.title for one in controller.execution.events if one.event.task][::-1]
