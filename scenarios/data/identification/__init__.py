"""`irb-twin identify`: identify an arm from its logs, and report it."""
