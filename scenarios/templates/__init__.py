"""Templates of `irb-twin new`: files that run unchanged, copied under another name."""
