"""Who is accepted: one protocol, one file a policy."""
