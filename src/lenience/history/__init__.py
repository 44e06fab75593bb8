"""Past decisions: counts by segment, dates, statuses, and the beliefs they lead to."""
