"""What the kernel must be started with for RDMA to work."""

from __future__ import annotations

import re
from collections.abc import Collection

ARGUMENT = "kho=off"
GRUB = "/etc/default/grub.d/90-tinderbox-fabric.cfg"
GRUB_TEXT = (
    "# By Tinderbox, fabric of the fleet file: kexec handover keeps memory that RDMA then can not register.\n"
    f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {ARGUMENT}"\n'
)
# ibv_reg_mr fails, CmaFree exceeds CmaTotal: christopherowen/dgx-spark-networking, docs/host-prerequisites.md
# (7.0.0-1019-nvidia); MiaAI DSpark issue 259. Unverified on hardware.
_HANDOVER = re.compile(r"7\.0\.0-\d+")


def needs_argument(kernel: str) -> bool:
    """Whether this kernel has the kexec handover that takes RDMA's memory."""
    return _HANDOVER.match(kernel) is not None


def writes_argument(kernel: str, arguments: Collection[str], ours: bool) -> bool:
    """Whether our file for the boot loader is to be there. `ours`: it is; an operator's own argument is left alone."""
    return needs_argument(kernel) and (ours or ARGUMENT not in arguments)
