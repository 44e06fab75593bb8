"""Describe in OpenAPI which objects reject unknown fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from litestar.openapi.spec import Schema
from litestar.plugins import OpenAPISchemaPlugin
from litestar.typing import FieldDefinition

if TYPE_CHECKING:
    from litestar._openapi.schema_generation import SchemaCreator


class StrictStructSchemas(OpenAPISchemaPlugin):
    """Adds ``additionalProperties: false`` to the schema of each struct that rejects unknown fields."""

    def is_plugin_supported_field(self, field_definition: FieldDefinition) -> bool:
        """Return whether a type is a struct that rejects unknown fields."""
        if field_definition.is_union or not field_definition.is_subclass_of(msgspec.Struct):
            return False
        return bool(field_definition.type_.__struct_config__.forbid_unknown_fields)

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: SchemaCreator) -> Schema:
        """Return the schema of a struct, as the framework makes it, with the addition."""
        schema = next(
            plugin.to_openapi_schema(field_definition, schema_creator)
            for plugin in schema_creator.plugins
            if plugin is not self and schema_creator.plugin_supports_field(plugin, field_definition)
        )
        assert isinstance(schema, Schema)
        schema.additional_properties = False
        return schema
