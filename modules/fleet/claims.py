"""What services take of a host's memory, as far as that is known before any host is contacted.

By the catalog's and the lock's sizes, without the checkpoint's own headers: what vLLM and SGLang take by their fraction
is known all the same, and everything else is a lower bound. So what
does not fit by this does not fit. `modules/operations/memory.py` reckons anew with the checkpoint on the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from modules.catalog import Catalog
from modules.fleet.compose import composed_engine, composed_flags, draft_of, model_of
from modules.memory.advice import Change, nearest
from modules.memory.checkpoint import Checkpoint, Shape, share_of
from modules.memory.layers import Layer
from modules.memory.plan import LAB_RESERVE, SYSTEM_RESERVE, Machine
from modules.memory.reckon import plan_memory
from modules.memory.serving import Settings, UnplannableError, serving_of
from modules.memory.sizes import GIB, gib
from modules.spec.lock import Lock
from modules.spec.model import Model
from modules.spec.settings import HostSettings, Service

# MemTotal of a Spark, as docs/memory.md's figures have it. Others show 119: the host itself is asked before a start.
SPARK_MEMORY = round(121.69 * GIB)
_UNREAD = "its files were not read yet"
_WEIGHTS = (".safetensors", ".gguf", ".bin")


def memory_of(settings: HostSettings) -> int:
    """MemTotal to reckon with, in bytes: of a lab host what the fleet file says, since that machine may be any."""
    written = round(settings.hardware.memory_gib * GIB)
    return written if settings.hardware.simulated else max(written, SPARK_MEMORY)


def reserve_of(settings: HostSettings) -> int:
    """What the system keeps, in bytes."""
    return LAB_RESERVE if settings.hardware.simulated else SYSTEM_RESERVE


@dataclass(frozen=True)
class Sizes:
    """What is known of models. `lock`: has the sizes of files that were fetched once."""

    catalog: Catalog
    lock: Lock

    def weights(self, model: Model) -> int | None:
        """Bytes of a model's weights; None: not known yet."""
        commit = self.lock.commit(model.repository, model.revision) or model.revision
        listed = self.lock.listing(model.repository, commit)
        sizes = [int(line.split()[1]) for path, line in listed.items() if path.endswith(_WEIGHTS)]
        if sizes:
            return sum(sizes)
        return None if model.size_gib is None else round(model.size_gib * GIB)

    def checkpoint(self, service: Service, model: Model, *, guessed: bool = False) -> Checkpoint | None:
        """What stands for the checkpoint of a model, and of the service's draft model; None while a size is unknown.

        `guessed`: then of no size at all, for engines that take the same whatever they serve.
        """
        parts = [self.weights(one) for one in (model, draft_of(service, self.catalog)) if one is not None]
        if None in parts and not guessed:
            return None
        # One layer in the place of all that grow with a sequence, in 16 bits. What does not grow is left out.
        values = (model.kv_bytes_per_token or 0) // 2
        layers = (Layer("full", values),) if values else ()
        shape = Shape(context=model.context or 1)
        whole = Checkpoint({"weights": sum(part or 0 for part in parts)}, layers, None if layers else _UNREAD, shape)
        return share_of(whole, 1 if service.cluster is None else len(service.cluster.hosts))

    def settings(self, service: Service, model: Model) -> Settings:
        """What of a service decides about memory."""
        engine = composed_engine(self.catalog.engines[service.engine], service)
        return Settings(engine, composed_flags(engine, service, model), {**engine.environment, **service.environment})

    def claim(self, service: Service, machine: Machine) -> int | None:
        """Bytes that a service takes, at least; None where that is not known."""
        served = model_of(service, self.catalog)
        if served is None:
            return None
        try:
            serving = serving_of(self.settings(service, served))
            # A share of the memory is taken by what it holds and by the cache, whichever has how much of it.
            checkpoint = self.checkpoint(service, served, guessed=serving.fraction is not None)
            return None if checkpoint is None else plan_memory(checkpoint, serving, machine).claim
        except UnplannableError:
            return None

    def would_fit(self, service: Service, machine: Machine) -> Iterator[str]:
        """What of the service could be changed for it to fit beside the machine's neighbours, in words."""
        served = model_of(service, self.catalog)
        if served is None:
            return
        yield from map(str, self._changes(service, served, machine))
        for name, model in self.smaller(service, served):
            # Of several the first, which moves least.
            change = next(iter(self._changes(service, model, machine)), None)
            if change is not None:
                yield f"model: {name}{f' with {change}' if str(change) else ''}"

    def _changes(self, service: Service, model: Model, machine: Machine) -> Iterator[Change]:
        checkpoint = self.checkpoint(service, model)
        if checkpoint is None:
            return
        try:
            settings = self.settings(service, model)
            if plan_memory(checkpoint, serving_of(settings), machine).fits:
                yield Change()
            else:
                yield from (one.change for one in nearest(checkpoint, settings, machine))
        except UnplannableError:
            return

    def smaller(self, service: Service, model: Model) -> list[tuple[str, Model]]:
        """The catalog's models of the same name in the API in a smaller quantisation, which this engine serves too."""
        size = self.weights(model)
        known: Mapping[str, Model] = self.catalog.models
        return [
            (name, other)
            for name, other in known.items()
            if other.served_as == model.served_as
            and other.task == model.task
            and (other.file is None) == (model.file is None)
            and (service.engine in other.flags or service.engine not in model.flags)
            and size is not None
            and (smaller := self.weights(other)) is not None
            and smaller < size
        ]


def told(size: int) -> str:
    """Bytes, as people read them."""
    return gib(size)
