"""Results to share: a short anonymous block of text, and back from it to a fleet file and a named baseline."""

from modules.reporting.share.block import Share, ShareError, read_block, write_block
from modules.reporting.share.collect import share_of
from modules.reporting.share.reproduce import baseline_of, fleet_text, service_of

__all__ = [
    "Share",
    "ShareError",
    "baseline_of",
    "fleet_text",
    "read_block",
    "service_of",
    "share_of",
    "write_block",
]
