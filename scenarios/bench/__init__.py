"""What a person does at PyBullet's window."""
