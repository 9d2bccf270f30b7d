"""The tasks of ``maxmargin train --task``, other than chains: one module for each.

A task knows the files of its examples and how its predictions are written and scored (`base`).
Training (`train`), prediction and evaluation (`use`) are the same for all of them.
"""
