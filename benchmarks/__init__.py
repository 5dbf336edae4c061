"""Compare srvstat with other tools on the same data: `make bench`."""

import os
import sys

# For the load client, which is in tests/support.
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests"))
