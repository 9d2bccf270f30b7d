"""Large-margin learning of structured outputs."""
