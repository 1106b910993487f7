"""A host's part in a swarm: libtorrent, closed to all but the hosts that the controller named.

No tracker, no distributed hash table, no local discovery: peers are addresses from the request. Connections from others
are dropped, and who does not know the swarm's random name can not finish the handshake, which hides it (MSE).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import libtorrent as lt

if TYPE_CHECKING:
    from modules.hostside.swarm_pieces import PADDING, information, ordered
    from modules.hostside.swarm_priorities import priorities
    from modules.hostside.swarm_request import Request
    from modules.hostside.swarm_settings import SETTINGS, only
else:
    from swarm_pieces import PADDING, information, ordered
    from swarm_priorities import priorities
    from swarm_request import Request
    from swarm_settings import SETTINGS, only

# Blocks of 16 KiB that are asked of a peer ahead, at most: a seed that many ask shall not owe them seconds of its link.
_MOST_AHEAD, _LEAST_AHEAD = 500, 32
_KINDS = lt.alert.category_t
_ALERTS = _KINDS.status_notification | _KINDS.storage_notification | _KINDS.error_notification
_UNLIMITED = -1


@dataclass(frozen=True)
class Peer:
    """A connected host. `whole`: it has everything."""

    address: str
    whole: bool


class Swarm:
    """One torrent in one session."""

    def __init__(
        self, request: Request, names: dict[str, str], have: Sequence[bool], unfinished: dict[int, list[bool]]
    ) -> None:
        """Begin to listen and to connect. `names`: digest → the name in `blobs/` that its file has now.

        Raises `OSError`: the port is not free here.
        """
        self.request = request
        self.files = ordered(request.files)
        self._numbers: dict[str, int] = {}
        self._preferred: list[int] = []
        addresses = {address for address, _ in request.peers}
        self._known = addresses | set(request.allowed)
        self._givers = addresses - set(request.takers)
        self._away: set[str] = set()
        self.disk_trouble: OSError | None = None
        listen = ",".join(f"{address}:{request.port}" for address in request.listen)
        # With one address, peers shall see us come from it; with several, the route to each decides.
        source = request.listen[0] if len(request.listen) == 1 else ""
        places = {"listen_interfaces": listen, "outgoing_interfaces": source}
        ahead = {"max_out_request_queue": max(_LEAST_AHEAD, _MOST_AHEAD // request.share[1])}
        settings: Any = {**SETTINGS, **places, **ahead, "alert_mask": _ALERTS}
        self._session: Any = lt.session(settings)
        self._session.set_ip_filter(only(self._known))
        self._handle = self._add(names, have, unfinished)
        # The session's limits do not hold for peers on the local network; the torrent's do.
        self._handle.set_upload_limit(request.limit_bytes or _UNLIMITED)
        self._handle.set_download_limit(request.limit_bytes or _UNLIMITED)
        self._await_port()

    def _add(self, names: dict[str, str], have: Sequence[bool], unfinished: dict[int, list[bool]]) -> Any:
        request = self.request
        described: Any = information(request.name, self.files, request.piece_bytes, request.pieces)
        parameters = lt.add_torrent_params()
        parameters.ti = lt.torrent_info(lt.bencode({b"info": described}))
        parameters.save_path = str(request.repository.folder / "blobs")
        entries = [entry[b"path"][0].decode() for entry in described[b"files"]]
        self._numbers = {name: number for number, name in enumerate(entries) if name != PADDING}
        parameters.renamed_files = {self._numbers[digest]: name for digest, name in names.items()}
        flags = lt.torrent_flags
        parameters.flags = flags.disable_dht | flags.disable_lsd | flags.disable_pex | flags.apply_ip_filter
        if all(have):
            parameters.flags |= flags.seed_mode
        else:
            parameters.have_pieces = list(have)
            self._preferred = priorities([False] * len(have), have, request.share, starving=False)
            parameters.flags |= flags.sequential_download
            parameters.piece_priorities = self._preferred
            parameters.unfinished_pieces = unfinished
        return self._session.add_torrent(parameters)

    def _await_port(self) -> None:
        wanted = set(self.request.listen)
        found: set[str] = set()
        ends = time.monotonic() + 5
        while found < wanted and time.monotonic() < ends:
            for alert in self.alerts():
                if isinstance(alert, lt.listen_succeeded_alert):
                    found.add(str(alert.address))
                elif isinstance(alert, lt.listen_failed_alert):
                    raise OSError(f"port {self.request.port} for peers (weights.spread.port): {alert.message()}")
            time.sleep(0.02)

    def alerts(self) -> list[Any]:
        """What happened since the last look."""
        found = list(self._session.pop_alerts())
        for alert in found:
            # After this, libtorrent gives on what it has, and takes nothing more, without another word.
            if isinstance(alert, lt.file_error_alert) and self.disk_trouble is None:
                path = Path(str(alert.filename()))
                self.disk_trouble = OSError(alert.error.value(), str(alert.error.message()), str(path))
        return found

    def connect(self) -> None:
        """Try those peers that are not connected."""
        connected = {peer.address for peer in self.peers()}
        for address, port in self.request.peers:
            if address not in connected and address not in self._away:
                self._handle.connect_peer((address, port))

    def peers(self) -> list[Peer]:
        """Who takes part, as far as the handshake is done."""
        found = []
        for info in self._handle.get_peer_info():
            if not info.flags & (lt.peer_info.connecting | lt.peer_info.handshake):
                found.append(Peer(info.ip[0], bool(info.flags & lt.peer_info.seed)))
        return found

    def status(self) -> Any:
        """Libtorrent's own; `total_wanted_done`, `is_seeding`, `download_payload_rate`, `total_payload_upload`."""
        return self._handle.status()

    def have(self) -> list[bool]:
        """Which pieces are here and right."""
        return list(self._handle.status(lt.torrent_handle.query_pieces).pieces)

    def prefer(self, *, starving: bool) -> None:
        """Ask those who had all of it from the start for what nobody else can give, then for nothing: see `priorities`.

        `starving`: the others give nothing any more, so take from whoever has something.
        """
        status = self._handle.status(lt.torrent_handle.query_pieces)
        counts = self._handle.piece_availability()
        if status.is_seeding or len(counts) != len(self._preferred):
            self._stay_away(set())
            return
        givers = self._givers & {peer.address for peer in self.peers()}
        elsewhere = [count > len(givers) for count in counts]
        wanted = priorities(elsewhere, status.pieces, self.request.share, starving=starving)
        pairs = enumerate(zip(self._preferred, wanted, strict=True))
        changed = [(number, new) for number, (old, new) in pairs if old != new]
        if changed:
            self._handle.prioritize_pieces(changed)
            self._preferred = wanted
        mine, hosts = self.request.share
        # Once all of it is among the others, whoever gives it helps again.
        leave = hosts > 1 and not starving and all(status.pieces[mine::hosts]) and not all(elsewhere)
        self._stay_away(self._givers if leave else set())

    def _stay_away(self, addresses: set[str]) -> None:
        """Leave these peers, and come back to those left before."""
        if addresses != self._away:
            self._away = set(addresses)
            self._session.set_ip_filter(only(self._known - addresses))

    def rename(self, digest: str) -> None:
        """Give a whole file the name of its blob; it goes on being shared."""
        number = self._numbers[digest]
        self._handle.rename_file(number, digest)
        ends = time.monotonic() + 30
        while time.monotonic() < ends:
            for alert in self.alerts():
                if isinstance(alert, lt.file_renamed_alert) and alert.index == number:
                    return
                if isinstance(alert, lt.file_rename_failed_alert) and alert.index == number:
                    raise OSError(f"{digest}: {alert.message()}")
            time.sleep(0.02)
        raise OSError(f"{digest}: was not renamed in time")

    def unfinished(self) -> dict[int, list[bool]]:
        """Which blocks of which pieces are on the disk, of the pieces that are not whole."""
        self._handle.save_resume_data(lt.torrent_handle.flush_disk_cache)
        ends = time.monotonic() + 10
        while time.monotonic() < ends:
            for alert in self.alerts():
                if isinstance(alert, lt.save_resume_data_alert):
                    return {int(number): list(blocks) for number, blocks in alert.params.unfinished_pieces.items()}
                if isinstance(alert, lt.save_resume_data_failed_alert):
                    return {}
            time.sleep(0.02)
        return {}

    def close(self) -> None:
        """Leave, and listen no more."""
        self._session.remove_torrent(self._handle)
        self._session.pause()
        del self._session
