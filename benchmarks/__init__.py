"""Compare srvstat with other tools on the same data: `make bench`."""
