"""What this machine is, and what is done with its files and processes: asked and done here, for all the rest."""
