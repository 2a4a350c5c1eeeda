"""Sweeps of scenarios: what of them varies, what the command line prints of it, and tuning."""
