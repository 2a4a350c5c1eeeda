from .joint_paths import recorded_motion as recorded_motion
