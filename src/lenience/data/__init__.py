"""Real data that comes with the package: small tables, as numbers, with their source and their caveats."""
