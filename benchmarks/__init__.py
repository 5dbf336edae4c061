"""srvstat beside other tools, on one fleet, in one run: `make bench`."""
