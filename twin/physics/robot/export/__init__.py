"""Export of robots as files of other programs: URDF and MJCF."""
