"""Comparisons, operating characteristics, regret: what policies do, computed exactly where possible."""
