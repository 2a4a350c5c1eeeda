"""Combinations of scenario, arm and controller, and settings that make their runs short."""

from itertools import cycle, islice

import controllers
import twin
from scenarios.commands.validate import REPRESENTATIVE
from scenarios.running import registry
from tests.support import tasks
from tests.support.processor_times import shared

NAMES = tuple(registry.titles())
ROBOTS = REPRESENTATIVE  # those of other arms: tests/urdf/test_family.py
SUITED = [
    (robot, name) for robot in ROBOTS for name in NAMES if registry.find(name).kind().suits(twin.load(robot))
]
SHORT = {
    "collision": {"duration": 0.8},
    "constrained_circle": {"duration": 0.9, "time_step": 0.004, "radius": 0.08},
    "drive_check": {"duration": 0.4, "states": 20},
    "excitation": {"time_step": 0.005},
    "gravity_hold": {"duration": 0.2},
    "joint_tracking": {"duration": 0.4},
    "laboratory": {"time_step": 0.002, "speed": 0.3, "acceleration": 1.0, "distance": 0.18},
    "model_agreement": {"moves": 1, "states": 5, "free_time": 0.05},
    "parallelogram": {"free_time": 0.05, "duration": 0.5},
    "payload_mismatch": {"time_step": 0.002},
    "pose_path": {"time_step": 0.002, "speed": 0.8, "angular_speed": 2.5},
    "press": {"time_step": 0.002},
    "velocity_control": {"duration": 0.4},
}


def suited(name: str) -> list[str]:
    """Return the arms that a scenario suits."""
    return [robot for robot, suits in SUITED if suits == name]


def cases() -> list[tuple[str, str, str, dict]]:
    """Return arms, scenarios, controllers and further settings of the scenarios' runs.

    Each scenario runs with computed torque, and in each of its variants with another controller.  The arms
    and the other controllers take turns, so that each arm meets each scenario; an arm holds a pose with the
    controllers that it does not meet.
    """
    laws = [law for law in controllers.NAMES if law != "computed_torque"]
    others = {robot: islice(cycle(laws), 2 * k, None) for k, robot in enumerate(ROBOTS)}
    found = []
    for row, name in enumerate(name for name in NAMES if suited(name)):
        arms, variants = suited(name), ({}, *registry.find(name).kind.variants)
        for column in range(max(len(variants), len(arms))):
            arm = arms[(row + column) % len(arms)]
            more = dict(variants[column]) if column < len(variants) else {}
            law = more.pop("controller", None) or (next(others[arm]) if column else "computed_torque")
            found.append((arm, name, law, more))
    met = {(arm, law) for arm, _, law, _ in found}
    return found + [(arm, "gravity_hold", law, {}) for arm in ROBOTS for law in laws if (arm, law) not in met]


CASES = cases()


@shared
def full_run(name, controller, robot="irb140", **settings):
    """Run a scenario shortly; the result is cached because several tests ask for it."""
    settings = {**settings, **SHORT[name]}
    _, scenario, setup = tasks.task(name, robot=robot, controller=controller, **settings)
    run = scenario.run(setup)
    return run, scenario.metrics(run)
