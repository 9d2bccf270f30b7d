"""The command ``maxmargin``."""
