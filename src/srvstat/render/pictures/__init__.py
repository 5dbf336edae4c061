"""Static pictures of documents as SVG, drawn without any library."""
