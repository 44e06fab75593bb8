"""Who is accepted."""
