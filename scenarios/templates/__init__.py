"""What `irb-twin new` writes: files that run as they stand, written under another name."""
