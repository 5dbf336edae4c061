"""Compare srvstat with other tools on the same data: `make bench`."""

import os
import sys

# The load client belongs to the tests.
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests"))
