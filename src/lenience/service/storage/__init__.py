"""SQLite and PostgreSQL: schema, migrations, group commit, caches."""
