"""The codes of the three reasons that every decision rests on, made by a policy, a table or the service."""

from __future__ import annotations

ACCEPT, REJECT = "accept", "reject"
ABOVE, LEARNING, BELOW = "above_break_even", "worth_learning", "below_threshold"
