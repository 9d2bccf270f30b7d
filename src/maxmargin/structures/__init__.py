"""Structures: what is predicted."""
