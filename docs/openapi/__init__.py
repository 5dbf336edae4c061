"""Generate the OpenAPI document of the HTTP service."""
