"""Parse requests and frame answers with h11, with rules of HTTP that it lacks."""

import h11
from h11._headers import Headers

from srvstat.contract.http import MAX_HEAD_BYTES

_EMPTY_LINE = b"\r\n"


class Parser(h11.Connection):
    """h11's parser with three more rules of HTTP.

    It uses private parts of h11, whose version is pinned.
    """

    closes_after_answer = False
    """Whether the next answer is the last one of its connection."""

    def __init__(self, idle_seconds: float) -> None:
        """Parse requests of a client that may wait for some seconds after an answer."""
        super().__init__(h11.SERVER, MAX_HEAD_BYTES)
        self._idle_seconds = idle_seconds
        self._has_skipped_line = False

    def _extract_next_receive_event(
        self,
    ) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Skip one empty line before a request, and reject other major versions of HTTP."""
        if self.their_state is h11.IDLE and not self._has_skipped_line:
            start = bytes(self._receive_buffer)[: len(_EMPTY_LINE)]
            if start == _EMPTY_LINE:  # RFC 9112, section 2.2
                self._receive_buffer.maybe_extract_at_most(len(_EMPTY_LINE))
                self._has_skipped_line = True
            elif start == _EMPTY_LINE[:1]:
                return h11.NEED_DATA
        event = super()._extract_next_receive_event()
        if isinstance(event, h11.Request):
            self._has_skipped_line = False
            # A later minor version is treated as 1.1 (RFC 9110, section 2.5).
            if not event.http_version.startswith(b"1."):
                raise h11.RemoteProtocolError("not HTTP/1")
        return event

    def _clean_up_response_headers_for_sending(self, response: h11.Response) -> h11.Response:
        """Announce whether the connection stays open, and for how long."""
        if self.closes_after_answer and not _has_connection(response):
            response = _add_headers(response, (b"connection", b"close"))
        cleaned = super()._clean_up_response_headers_for_sending(response)
        # h11 has added `Connection: close` if the client wants it or knows only HTTP/1.0.
        if _has_connection(cleaned):
            return cleaned
        # RFC 9110, section 7.6.1, requires both.
        timeout = b"timeout=%d" % self._idle_seconds
        return _add_headers(cleaned, (b"connection", b"keep-alive"), (b"keep-alive", timeout))


def _has_connection(response: h11.Response) -> bool:
    # Iterating over `headers` itself is slow.
    return any(name == b"connection" for _, name, _ in response.headers._full_items)  # noqa: SLF001 - see Parser


def _add_headers(response: h11.Response, *more: tuple[bytes, bytes]) -> h11.Response:
    # As Headers, they are not checked again, which would take a tenth of the time of an answer.
    items = ((name, name, value) for name, value in more)
    headers = Headers([*response.headers._full_items, *items])  # noqa: SLF001 - see Parser
    return h11.Response(
        status_code=response.status_code,
        headers=headers,
        http_version=response.http_version,
        reason=response.reason,
    )
