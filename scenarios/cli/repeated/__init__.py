"""Commands that run a scenario many times: sweep, tune and learn."""
