"""h11's parser with two more rules of HTTP."""

import h11

_EMPTY_LINE = b"\r\n"


class Parser(h11.Connection):
    """Parse requests.

    This overrides a private method of h11, whose version is pinned.
    """

    _has_skipped_line = False

    def _extract_next_receive_event(
        self,
    ) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Skip one empty line before a request, and refuse another major version of HTTP."""
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
            # A greater minor version is treated as 1.1 (RFC 9110, section 2.5).
            if not event.http_version.startswith(b"1."):
                raise h11.RemoteProtocolError("not HTTP/1")
        return event
