"""What uses the disks, who needs it, and which command would free how much. Changes nothing.

TINDERBOX_JSON=1 prints it as JSON, too, a line a host. TINDERBOX_REPAIR=owner gives what is root's in a user's Hugging
Face cache to that user (docs/disk.md).
"""

from pyinfra import host

from modules.fleet import plan_of
from roles.disk import disk

disk(plan=plan_of(host))
