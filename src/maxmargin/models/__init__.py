"""Kinds of models: how each is saved, loaded, asked for predictions and described."""
