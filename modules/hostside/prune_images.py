"""Remove the images of ours, and the caches of engines, that nothing on this host needs any more.

    prune_images.py WANTED...

WANTED: images that the fleet file wants here. Needed are also those of every service's current and last good release,
and of every container. What is not called as Tinderbox calls its images is never touched.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import caches
    from modules.hostside import docker_cli as docker
    from modules.hostside.image_state import names, not_needed
    from modules.hostside.image_store import Store
else:
    import caches
    import docker_cli as docker
    from image_state import names, not_needed
    from image_store import Store


def main(wanted: list[str]) -> int:
    """Look again, and remove. Exit status 1 when docker would not remove one."""
    going, _ = not_needed(wanted)
    failed = False
    for name in going:
        # Without force: what a container uses stays.
        done = docker.capture("image", "rm", name)
        failed |= done.returncode != 0
        print(f"removed {name}" if done.returncode == 0 else f"{name} stays: {done.stderr.strip()}")
    listed = {name for _, name in names()}
    if listed or going:
        freed = Store().keep_only(listed)
        print(f"{freed} bytes of layers for passing images on were removed")
    old = caches.unneeded()
    caches.remove(old)
    for name in old:
        print(f"removed caches {name}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
