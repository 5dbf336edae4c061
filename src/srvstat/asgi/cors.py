"""Let pages of other origins call the API in a browser (CORS)."""

from starlette.responses import Response

from srvstat.contract.http import Head


class Cors:
    """The origins that may call the API, and the headers that say so."""

    def __init__(self, origins: tuple[str, ...]) -> None:
        self._origins = origins

    def build_headers(self, head: Head) -> dict[str, str]:
        """Return the headers of an answer that let the page of the request's origin read it."""
        raise NotImplementedError

    def is_preflight(self, head: Head) -> bool:
        """Return whether a browser asks what a page of another origin may send."""
        raise NotImplementedError

    def answer_preflight(self, head: Head, headers: dict[str, str]) -> Response:
        """Return the answer to a preflight; `headers` are those of every answer."""
        raise NotImplementedError
