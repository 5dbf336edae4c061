"""The version of srvstat. Builds of the package read it here."""

__version__ = "1.0.0.dev0"
