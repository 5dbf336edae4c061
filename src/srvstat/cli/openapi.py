"""`openapi`: print the description of the HTTP service that tools read."""

from srvstat.cli.output import Outcome
from srvstat.contract.openapi import read_openapi


def openapi() -> Outcome:
    """Print the OpenAPI document of the service.

    Its examples are answers of the demo snapshot.

    Example: srvstat openapi > openapi.json
    """
    return Outcome([read_openapi()])
