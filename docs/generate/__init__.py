"""What mkdocs generates from the sources when it builds the site."""
