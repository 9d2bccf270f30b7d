"""Scores of predicted structures, as their communities count them."""
