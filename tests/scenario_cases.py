"""Every scenario with every arm and every law, and settings under which a run of it is short."""

import controllers
import twin
from scenarios.running import registry

NAMES = tuple(registry.titles())
ROBOTS = twin.robot_names()
SUITED = [(robot, name) for robot in ROBOTS for name in NAMES if registry.find(name).suits(twin.load(robot))]
CASES = [(*pair, controller) for pair in SUITED for controller in controllers.NAMES]
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
