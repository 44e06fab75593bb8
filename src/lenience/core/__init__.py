"""Values and helpers that every other package uses: beliefs, bounds, errors, validation, formatting."""
