"""Pictures of results as SVG files, drawn without further packages."""
