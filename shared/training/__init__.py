"""Training: the loop that every floor shares, and what it needs, from schedules to checkpoints."""
