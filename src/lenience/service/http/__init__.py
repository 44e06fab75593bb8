"""The service over HTTP: JSON under /v1, described by /openapi.json, errors as problem+json."""
