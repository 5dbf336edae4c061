"""srvstat beside other tools, on one fleet, in one run: `make bench`."""

import os
import sys

# The load client is the tests' own.
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests"))
