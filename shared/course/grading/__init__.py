"""The rungs of every task, a file a phase: GRADES gives, by the task's id, the function that makes them."""
