"""Control laws in a loop with a plant, the engine or the model; rollouts."""
