"""Sweeps and tuning of scenarios: plan, execution, summary, pictures."""
