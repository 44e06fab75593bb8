"""Policies that look at a belief: the optimum, exposure limits and baselines."""
