"""Commands on logs and recordings: look at them, replay them, take something from them."""
