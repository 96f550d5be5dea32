"""The `groundup` program and the tools around the four floors: the doctor, the lens, the course."""

__version__ = "0.1.0"
