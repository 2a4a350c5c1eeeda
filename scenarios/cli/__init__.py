"""The command `irb-twin`: its words, what they do, what it prints, and how it ends."""
