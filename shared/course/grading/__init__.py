"""The rungs of every task: a file a phase, and what several share. GRADES gives, by the task's id, what makes them."""
