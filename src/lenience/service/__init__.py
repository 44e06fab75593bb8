"""The decision service: durable, auditable decisions over HTTP, on SQLite or PostgreSQL."""
