"""The command `irb-twin`: its options, its commands, its output and its exit status."""
