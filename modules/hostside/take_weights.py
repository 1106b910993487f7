"""Take a model from the other hosts of the fleet, verify every file of it, and give pieces on meanwhile.

    take_weights.py REQUEST

Runs in the tools' environment, as a job. REQUEST: see `swarm.Request`; it is removed at the end. What is there already
is not taken again; a file that is not what the hub publishes is set aside and taken anew, alone.

Writes the job's `result.json`: `commit`, `notes` (which files were wrong). Exit status: 0 all files are there and
right; 1 with the reason in the last lines.
"""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import weights_blobs as blobs
    from modules.hostside.arriving import Arriving
    from modules.hostside.job_result import tell_result
    from modules.hostside.page_cache import drop
    from modules.hostside.progress import Progress, Tally
    from modules.hostside.swarm import Swarm
    from modules.hostside.swarm_memory import recalled, remember
    from modules.hostside.swarm_pieces import HASH_BYTES, hashes, ordered, pieces
    from modules.hostside.swarm_request import Request
    from modules.hostside.swarm_troubles import disk_trouble, stalled
    from modules.hostside.weights_stamp import WantedFile
else:
    import weights_blobs as blobs
    from arriving import Arriving
    from job_result import tell_result
    from page_cache import drop
    from progress import Progress, Tally
    from swarm import Swarm
    from swarm_memory import recalled, remember
    from swarm_pieces import HASH_BYTES, hashes, ordered, pieces
    from swarm_request import Request
    from swarm_troubles import disk_trouble, stalled
    from weights_stamp import WantedFile

_TICK_S = 0.25
# What came is written down when it is this much, half of what a killed process may have to take again, or this old;
# no more often than the least.
_REMEMBER_BYTES, _REMEMBER_S, _LEAST_S = 16 * 1024**2, 5.0, 0.5
# Nothing came for so long though others have what is lacking: one of them is gone with its share.
_STARVING_S = 5.0
# For so long it then takes from whoever has something; the others may have only paused.
_AID_S = 30.0
# No peer gives anything: those who have the rest are gone.
PATIENCE_S = 60.0
# Somebody takes from us still, but nothing moves: it is stuck, and the run shall go on.
_LINGER_S = 15.0
_SEEN_S = 0.5
_GIB = 1024**3


def run(request: Request, progress: Progress) -> None:
    """All of it."""
    repository = request.repository
    swarm: Swarm | None = None
    with blobs.alone(repository):
        blobs.require_space(repository, request.files, request.reserve_bytes)
        present = Tally(progress, "verifying", sum({file.digest: file.size for file in request.files}.values()))
        notes = blobs.check_present(repository, request.commit, request.files, present.add)
        notes = [note if "no such file" in note else f"{note}; it was taken anew" for note in notes]
        for note in notes:
            print(note)
        missing = blobs.lacking(repository, request.files)
        if missing:
            swarm = take(request, missing, progress)
        blobs.publish(
            repository,
            request.revision,
            request.commit,
            request.files,
            filters=request.filters,
            tree=request.tree,
        )
    tell_result({"commit": request.commit, "notes": notes})
    taken = swarm.status().total_payload_download if swarm is not None else 0
    print(f"from peers: {len(missing)} of {len(request.files)} files, {taken} bytes", flush=True)
    if swarm is not None:
        linger(swarm, progress)
        swarm.close()
        # On a GB10 the page cache is the GPU's memory.
        for file in missing:
            drop(repository.blob(file))


def take(request: Request, missing: list[WantedFile], progress: Progress) -> Swarm:
    """Have all of the missing files, each verified; the swarm goes on."""
    repository = request.repository
    (repository.folder / "blobs").mkdir(parents=True, exist_ok=True)
    for file in missing:
        if file.size == 0:
            repository.blob(file).touch()
    missing = [file for file in missing if file.size]
    swarm = Swarm(request, *gathered(request, missing, progress))
    memory = repository.folder / ".tinderbox-swarm.json"
    parts = {file.digest: blobs.part_of(repository, file, blobs.PEER_PART) for file in missing}
    arriving = Arriving(parts, swarm.files, pieces(swarm.files, request.piece_bytes))
    await_all(swarm, memory, list(parts.values()), arriving, progress)
    total = sum({file.digest: file.size for file in request.files}.values())
    tally = Tally(progress, "verifying", total, total - sum(file.size for file in missing))
    wrong = blobs.check_parts(
        repository,
        missing,
        blobs.PEER_PART,
        tally.add,
        rename=lambda _, blob: swarm.rename(blob.name),
        found=arriving.found(),
    )
    memory.unlink(missing_ok=True)
    if wrong:
        raise blobs.GiveUpError("came whole from the peers, and is another on this disk: " + "; ".join(wrong))
    return swarm


def gathered(
    request: Request, missing: list[WantedFile], progress: Progress
) -> tuple[dict[str, str], list[bool], dict[int, list[bool]]]:
    """The names that the files have now, which pieces are here, and which blocks of further pieces.

    What a killed process left is believed only where its hash is right.
    """
    repository = request.repository
    files = ordered(request.files)
    lacks = {file.digest for file in missing}
    names = {file.digest: file.digest + (blobs.PEER_PART if file.digest in lacks else "") for file in files}
    for file in missing:
        part, beginning = (
            blobs.part_of(repository, file, blobs.PEER_PART),
            blobs.part_of(repository, file, blobs.HUB_PART),
        )
        if beginning.exists() and not part.exists():
            beginning.replace(part)
    cut = pieces(files, request.piece_bytes)
    paths = [repository.folder / "blobs" / names[file.digest] for file in files]
    whole = [files[piece.file].digest not in lacks for piece in cut]
    begun = [number for number, piece in enumerate(cut) if not whole[number] and paths[piece.file].exists()]
    tally = Tally(progress, "looking at what is here", sum(cut[number].size for number in begun))
    found = dict(zip(begun, hashes(paths, [cut[number] for number in begun], tally.add), strict=True))
    wanted = [request.pieces[start : start + HASH_BYTES] for start in range(0, len(request.pieces), HASH_BYTES)]
    have = [whole[number] or found.get(number) == wanted[number] for number in range(len(cut))]
    blocks = recalled(repository.folder / ".tinderbox-swarm.json", request.piece_bytes)
    return names, have, {number: marks for number, marks in blocks.items() if not have[number]}


def await_all(swarm: Swarm, memory: Path, parts: list[Path], arriving: Arriving, progress: Progress) -> None:
    """Wait until all is here; on the way, hash what is, and remember it for a process that is killed."""
    total, best, moved = sum(file.size for file in swarm.files), -1, time.monotonic()
    remembered, kept, starves_until = time.monotonic(), 0, 0.0
    while True:
        swarm.connect()
        if time.monotonic() - moved > _STARVING_S and swarm.peers():
            starves_until = time.monotonic() + _AID_S
        swarm.prefer(starving=time.monotonic() < starves_until)
        status = swarm.status()
        progress.report("from peers", status.total_done, total, "bytes")
        if swarm.disk_trouble is not None:
            raise blobs.GiveUpError(disk_trouble(swarm.request, swarm.disk_trouble))
        if status.errc.value():
            raise blobs.GiveUpError(
                f"{swarm.request.repository.folder}: {status.errc.message()}: mend that and run again"
            )
        if status.is_seeding:
            remember(swarm, memory, parts)
            return
        if status.total_done > best:
            best, moved = status.total_done, time.monotonic()
        elif time.monotonic() - moved > PATIENCE_S:
            raise blobs.GiveUpError(stalled(swarm, status.total_done, total, PATIENCE_S))
        since = time.monotonic() - remembered
        if since > _REMEMBER_S or (since > _LEAST_S and status.total_done - kept >= _REMEMBER_BYTES):
            have = swarm.have()
            remember(swarm, memory, parts)
            arriving.advance(have)
            remembered, kept = time.monotonic(), status.total_done
        time.sleep(_TICK_S)


def linger(swarm: Swarm, progress: Progress) -> None:
    """Give on to those who still take from us."""
    # For those who wait until all have it, to see that this host has.
    swarm.connect()
    time.sleep(_SEEN_S)
    given, moved = -1, time.monotonic()
    while any(not peer.whole for peer in swarm.peers()):
        status = swarm.status()
        progress.report("given to peers", status.total_payload_upload, 0, "bytes")
        if status.total_payload_upload > given:
            given, moved = status.total_payload_upload, time.monotonic()
        elif time.monotonic() - moved > _LINGER_S:
            return
        time.sleep(_TICK_S)


def main() -> int:
    """Entry point."""
    path = Path(sys.argv[1])
    try:
        request = Request.read(path)
        run(request, Progress())
    except (blobs.GiveUpError, OSError, KeyError) as reason:
        print(f"{socket.gethostname()}: {reason}", file=sys.stderr)
        return 1
    path.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
