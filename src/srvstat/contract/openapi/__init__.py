"""The OpenAPI document of the HTTP service, made from the models."""
