"""A fuzzer for every kind of file that maxmargin reads; ``tools/fuzz.py`` is the command.

``seeds`` makes good files, ``kinds`` turns the number of an input into a mutated file and the
commands that read it, ``attempt`` runs these and judges what they did, ``pool`` does so in worker
processes that may crash.
"""
