"""What a person sees and presses in PyBullet's window; PyBullet itself is handed in by `twin.engine`."""
