"""Values and functions that every other package uses: beliefs, bounds, errors, validation, formatting."""
