"""Record the exchanges of the service in a file, for `srvstat replay`."""

from queue import Empty, SimpleQueue

from srvstat.asgi.line_writer import LineWriter
from srvstat.asgi.log import Log
from srvstat.contract.key_filter import KeyFilter
from srvstat.support.recordings import Loss, RecordingFile, ServedExchange, encode_line

_SECONDS_TO_CLOSE = 5


class Recorder:
    """Collect exchanges in the event loop; a separate thread writes them.

    An exchange that can't be written is lost and counted. The log has the first reason, and the
    number once writing works again or the service stops.

    Raises UsageError, OutputError if the file can't be used.
    """

    def __init__(self, path: str, log: Log) -> None:
        self._path = path
        self._log = log
        self._file = RecordingFile(path)
        self._writer = LineWriter("srvstat-recorder", self._write, self._report)
        self._losses: SimpleQueue[Loss | None] = SimpleQueue()
        self._lost = 0

    def add(self, exchange: ServedExchange, key_filter: KeyFilter) -> None:
        """Add an exchange, without keys."""
        self._writer.add(encode_line(exchange, key_filter))

    def close(self) -> None:
        """Write the remaining exchanges; give up after five seconds."""
        self._writer.close(_SECONDS_TO_CLOSE)
        self._report()
        self._report_number()

    def _write(self, lines: list[bytes], dropped: int) -> None:
        """Write lines in the writer's thread."""
        if dropped:
            self._losses.put(Loss(dropped, f"{self._path}: too slow"))
        self._losses.put(self._file.append(lines))

    def _report(self) -> None:
        """Report in the log what the thread has lost, or that writing works again."""
        while True:
            try:
                loss = self._losses.get_nowait()
            except Empty:
                return
            if loss is None:
                self._report_number()
            else:
                if not self._lost:
                    self._log.add_event("exchanges can't be recorded", reason=loss.reason)
                self._lost += loss.lines

    def _report_number(self) -> None:
        if self._lost:
            self._log.add_event("exchanges not recorded", exchanges=self._lost)
            self._lost = 0
