"""Rules about the player counts of a server, one file each; `check.py` applies them all."""
