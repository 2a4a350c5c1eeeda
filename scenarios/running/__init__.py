"""Finding scenarios, and running them: what there is, its settings, a run and what went wrong in it."""
