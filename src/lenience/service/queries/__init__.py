"""Read the log: policies, decisions, exports and audits."""
