"""Files: columns, items, model files."""
