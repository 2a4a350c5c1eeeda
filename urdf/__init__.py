"""What each robot is: its URDF, and the facts (`robot.toml`) that the URDF is built from."""
