"""Turn what settings say of the controller's files into what is in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from modules.fleet.compose import composed_recipe, recipe_faults
from modules.fleet.files import DATASETS, from_folder
from modules.fleet.problem import Key, Problem
from modules.fleet.tree import Tree, find
from modules.spec.fleet import Ssh
from modules.spec.gateway import Gateway
from modules.spec.image import Recipe
from modules.spec.network import AptRepository
from modules.spec.settings import HostSettings, Service

NO_FILE = "no such file: "
_BEGIN = "; for a host that you have only a password of: make bootstrap makes it"
_FINGERPRINT = re.compile(r"[0-9A-F]{40}")


class Resolver:
    """Reads the files that one host's layers name. `problems`: what is wrong with them."""

    def __init__(self, folder: Path, simulated: bool) -> None:
        self._folder = folder
        self._todo = f"{'start the lab (make lab-up)' if simulated else 'create it'}, or correct the path"
        self.problems: list[Problem] = []

    def ssh(self, ssh: Ssh, tree: Tree) -> Ssh:
        """Make the paths absolute."""
        paths: dict[str, Any] = {}
        for key in ("key", "known_hosts", "config"):
            written = getattr(ssh, key)
            if written is not None:
                paths[key] = str(self._file(written, tree, (key,), "" if key == "config" else _BEGIN))
        if (
            ssh.key is not None
            and (path := Path(paths["key"])).is_file()
            and b"PRIVATE KEY-----" not in path.read_bytes()
        ):
            self._wrong(tree, ("key",), f"{ssh.key} holds no private key", "name the private half, not the .pub file")
        return ssh.model_copy(update=paths)

    def settings(self, settings: HostSettings, tree: Tree) -> HostSettings:
        """Make the paths absolute, and read the fingerprints of signing keys."""
        network = settings.network
        changes: dict[str, Any] = {}
        if network.ca_bundle is not None:
            changes["ca_bundle"] = str(self._ca_bundle(network.ca_bundle, tree))
        sources = {
            name: self._repository(repository, tree, ("network", "apt", name))
            for name in ("cuda", "container_toolkit")
            if (repository := getattr(network.apt, name)) is not None
        }
        changes["apt"] = network.apt.model_copy(update=sources)
        services = {
            name: self._service(service, tree, ("services", name)) for name, service in settings.services.items()
        }
        parts = {"network": network.model_copy(update=changes), "services": services}
        return settings.model_copy(update={**parts, "gateway": self._gateway(settings.gateway, tree)})

    def _gateway(self, gateway: Gateway | None, tree: Tree) -> Gateway | None:
        """The paths of the gateway's certificate and key, made absolute."""
        if gateway is None or gateway.tls is None or gateway.tls.host_file is not None:
            return gateway
        paths: dict[str, str] = {}
        for key, mark in (("certificate", b"-----BEGIN CERTIFICATE-----"), ("key", b"PRIVATE KEY-----")):
            written = str(getattr(gateway.tls, key))
            path = self._file(written, tree, ("gateway", "tls", key))
            if path.is_file() and mark not in path.read_bytes():
                what = f"{written} holds no {'certificate' if key == 'certificate' else 'private key'} in PEM form"
                self._wrong(tree, ("gateway", "tls", key), what, "name the file that has it")
            paths[key] = str(path)
        return gateway.model_copy(update={"tls": gateway.tls.model_copy(update=paths)})

    def _service(self, service: Service, tree: Tree, key: Key) -> Service:
        return self._with_template(self._with_dataset(service, tree, key), tree, key)

    def _with_dataset(self, service: Service, tree: Tree, key: Key) -> Service:
        """The dataset of a gate that is written out: shipped with Tinderbox, or beside the fleet file."""
        gate = service.gate
        if gate is None or isinstance(gate, str) or gate.sharegpt is None:
            return service
        dataset = gate.sharegpt.dataset
        path = DATASETS / dataset.file
        if not path.is_file():
            path = self._file(dataset.file, tree, (*key, "gate", "sharegpt", "dataset", "file"))
        changed = gate.sharegpt.model_copy(update={"dataset": dataset.model_copy(update={"file": str(path)})})
        return service.model_copy(update={"gate": gate.model_copy(update={"sharegpt": changed})})

    def _with_template(self, service: Service, tree: Tree, key: Key) -> Service:
        """Make the path of an own recipe's template absolute, and see that an image can be described by it."""
        image = service.image
        if not isinstance(image.recipe, Recipe) or not image.recipe.own or image.recipe.template is None:
            return service
        key = (*key, "image", "recipe", "template")
        path = self._file(image.recipe.template, tree, key)
        recipe = image.recipe.model_copy(update={"template": str(path)})
        image = image.model_copy(update={"recipe": recipe})
        if path.is_file() and not recipe_faults(recipe, image):
            self._rendered(composed_recipe(recipe, image), tree, key)
        return service.model_copy(update={"image": image})

    def _rendered(self, recipe: Recipe, tree: Tree, key: Key) -> None:
        # Few fleets have recipes of their own, and every run of pyinfra would pay for the import.
        from jinja2 import TemplateError

        from modules.images import build_of

        try:
            build_of(recipe)
        except (TemplateError, OSError, UnicodeDecodeError) as error:
            what = f"{recipe.name} can not be rendered: {error}"
            self._wrong(tree, key, what, "correct the template, or the recipe's pins, packages and arguments")

    def _ca_bundle(self, written: str, tree: Tree) -> Path:
        key = ("network", "ca_bundle")
        path = self._file(written, tree, key)
        if path.is_file() and b"-----BEGIN CERTIFICATE-----" not in path.read_bytes():
            self._wrong(tree, key, f"{written} holds no certificate in PEM form", "name a file of PEM certificates")
        return path

    def _repository(self, repository: AptRepository, tree: Tree, key: Key) -> AptRepository:
        written = repository.fingerprint_file
        if written is None:
            return repository
        path = self._file(written, tree, (*key, "fingerprint_file"))
        fingerprint = path.read_text(encoding="ascii", errors="replace").strip() if path.is_file() else None
        if fingerprint is not None and not _FINGERPRINT.fullmatch(fingerprint):
            where = (*key, "fingerprint_file")
            self._wrong(tree, where, f"{written} holds no fingerprint", "it must hold 40 hex digits in upper case")
        return repository.model_copy(update={"fingerprint": fingerprint, "fingerprint_file": None})

    def _file(self, written: str, tree: Tree, key: Key, todo: str = "") -> Path:
        path = from_folder(written, self._folder)
        if not path.is_file():
            self._wrong(tree, key, f"{NO_FILE}{path}", self._todo + todo)
        return path

    def _wrong(self, tree: Tree, key: Key, what: str, todo: str) -> None:
        self.problems.append(Problem(find(tree, key).origin, what, todo))
