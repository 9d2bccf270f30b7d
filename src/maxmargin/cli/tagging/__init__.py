"""The parts of ``maxmargin tag``: streams, known labels, and what is written of predictions."""
