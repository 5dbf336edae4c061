"""Pack srvstat for executors, on which it may not be installed."""

import os
import zipfile
from pathlib import Path

_PACKAGE = Path(__file__).parents[2]


def zip_package(folder: str) -> str:
    """Write a zip file with our own modules to a folder, and return its path."""
    path = os.path.join(folder, "srvstat.zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for file in sorted(_PACKAGE.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                package.write(file, file.relative_to(_PACKAGE.parent))
    return path
