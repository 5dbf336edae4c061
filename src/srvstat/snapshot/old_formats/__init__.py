"""Read and verify snapshots of the formats before the current one."""
