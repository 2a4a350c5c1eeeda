"""Programs in RAPID as scenarios."""
