"""What policies do: value, operating characteristics, regret, fairness, off-policy estimates."""
