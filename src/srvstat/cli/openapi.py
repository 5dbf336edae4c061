"""`openapi`: the description of the HTTP service, for tools."""

from srvstat.cli.output import Outcome


def openapi() -> Outcome:
    """Print the OpenAPI document of the service.

    Its examples are the answers of the demo's snapshot. The document is the same everywhere.

    Example: srvstat openapi > openapi.json
    """
    from srvstat.contract.openapi import read_openapi

    return Outcome([read_openapi()])
