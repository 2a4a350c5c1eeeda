"""Combinations of scenario, arm and controller, and settings that make their runs short."""

import controllers
import twin
from scenarios.running import registry
from tests.support.processor_times import shared

NAMES = tuple(registry.titles())
ROBOTS = twin.robot_names()
SUITED = [(robot, name) for robot in ROBOTS for name in NAMES if registry.find(name).suits(twin.load(robot))]
FEW = ("computed_torque", "cascade")
"""Controllers that run with every arm in every scenario.

Other controllers run with every arm in `joint_tracking` only, and with the first arm elsewhere.
"""


def is_tried(robot: str, scenario: str, controller: str) -> bool:
    """Return whether tests run a combination: every pair of the three occurs, but not every triple."""
    first = next(suited for suited, name in SUITED if name == scenario)
    return robot == first or scenario == "joint_tracking" or controller in FEW


CASES = [(*pair, law) for pair in SUITED for law in controllers.NAMES if is_tried(*pair, law)]
SHORT = {
    "drive_check": {"duration": 0.8, "states": 50},
    "drive_mismatch": {"duration": 0.8},
    "excitation": {"time_step": 0.005},
    "gravity_hold": {"duration": 0.2},
    "identify_joint": {"duration": 1.0},
    "joint_tracking": {"duration": 0.2},
    "laboratory": {"speed": 0.3, "acceleration": 1.0, "distance": 0.15},
    "manutec_move": {},
    "model_agreement": {"moves": 1, "states": 5, "free_time": 0.05},
    "parallelogram": {"free_time": 0.05, "duration": 1.0},
    "payload_mismatch": {},
    "pose_path": {"speed": 0.5, "angular_speed": 2.0},
}


@shared
def full_run(name, controller, robot="irb140"):
    """Run a scenario as `irb-twin validate` does; the result is cached because a run takes half a second."""
    scenario = registry.find(name)
    log = scenario.run(scenario.Config(robot=robot, controller=controller, **shorter(name, robot)))
    return log, scenario.metrics(log)


def shorter(name, robot):
    """Return settings that shorten the longest scenarios, for all arms except the IRB 140."""
    long = ("drive_check", "drive_mismatch", "excitation", "identify_joint", "laboratory", "pose_path")
    return SHORT[name] if name in long and robot != "irb140" else {}
