"""Definition of each robot: its facts (`robot.toml`), and the URDF that is built from them."""
