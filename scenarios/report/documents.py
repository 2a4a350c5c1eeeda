"""JSON documents: numbers that are not finite are null, because JSON has no such numbers."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Return a value as JSON stores it: arrays become lists, and numbers that are not finite `None`."""
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def attributes(item: Any, *names: str) -> dict[str, Any]:
    """Return some attributes of an object by their names."""
    return {name: getattr(item, name) for name in names}


def write_document(path: Path, document: Any) -> None:
    """Write a document as JSON."""
    path.write_text(json.dumps(plain(document), indent=1, allow_nan=False) + "\n", encoding="utf-8")
