"""Take over a listening socket from the parent process, with the protocol of systemd.

The parent sets LISTEN_PID to the process id, LISTEN_FDS to the number of sockets, and passes them
as descriptors from 3 on (sd_listen_fds(3)).
"""

import os

from srvstat.contract.errors import UsageError
from srvstat.contract.wire import quote_value

_FIRST_DESCRIPTOR = 3


def take_inherited_descriptor() -> int | None:
    """Return the descriptor of the socket that the parent has passed; None without one.

    Removes the variables, which are not for the children of this process.

    Raises UsageError for more than one socket.
    """
    names = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID")
    passed = {name: os.environ.pop(name, "") for name in names}
    if passed["LISTEN_PID"] != str(os.getpid()) or passed["LISTEN_FDS"] in ("", "0"):
        return None
    if passed["LISTEN_FDS"] != "1":
        count = quote_value(passed["LISTEN_FDS"])
        raise UsageError(f"LISTEN_FDS: {count} sockets; pass exactly one, with one ListenStream=")
    return _FIRST_DESCRIPTOR
