"""Recorded exchanges: HAR files, curl commands and the recordings of the service."""
