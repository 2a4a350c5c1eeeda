"""What a person does at PyBullet's window: jog, teach, exchange laws, turn gains, compare, look again."""
