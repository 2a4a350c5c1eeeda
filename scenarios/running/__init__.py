"""Registry of the scenarios, execution of runs, and diagnosis of failed checks."""
