"""Commands of `irb-twin` that belong to no single feature: run, validate, gui, list, logs, new."""
