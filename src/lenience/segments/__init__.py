"""Many populations at once: cells of the arrivals, each with a belief, an objective and a policy of its own."""
