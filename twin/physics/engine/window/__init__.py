"""Display and controls of PyBullet's window; PyBullet itself is passed in by `twin.engine`."""
