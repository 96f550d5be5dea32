"""Every kernel through a GPU's compiler, without a GPU: `groundup check --compile`. check.py is the way in."""
