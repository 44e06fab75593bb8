"""The HTTP API: JSON under /v1, described by /openapi.json, with errors as problem+json."""
