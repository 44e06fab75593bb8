"""Alembic's entry: run the migrations on the connection that :mod:`lenience.service.storage.migrate` hands over."""

from __future__ import annotations

from alembic import context

from lenience.service.storage.schema import metadata

if hasattr(context, "config"):  # nothing to do when it is only looked at
    connection = context.config.attributes["connection"]
    context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
    context.run_migrations()
