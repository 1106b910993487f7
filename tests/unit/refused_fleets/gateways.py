"""What a fleet file must not say of its one endpoint."""

from __future__ import annotations

from tests.unit.refused_fleets.refusal import Refusal, refusal

_FLEET = """\
fleet: office
secrets: {{key: {{env: HOME}}, other: {{env: HOME}}}}
defaults:
  services:
    gpt-oss: {{engine: vllm, model: gpt-oss-120b{service}}}
hosts:
  spark-1: {{address: 10.0.0.11}}
  spark-2: {{address: 10.0.0.12}}
  front:
    address: 10.0.0.10
    settings:
      services: {{gpt-oss: null}}
      gateway: {gateway}
"""
_OPEN = ", listen: 0.0.0.0, api_key: key"


def _gateway(name: str, gateway: str, *told: tuple[int, str, str], service: str = _OPEN) -> Refusal:
    return refusal(name, _FLEET.format(gateway=gateway, service=service), *told)


_KEY = "hosts.front.settings.gateway"
REFUSALS = (
    _gateway(
        "a gateway for strangers", "{listen: 0.0.0.0}",
        (13, f"{_KEY}.listen", "listens on 0.0.0.0, where others can reach it, and no client has a key"),
    ),
    _gateway(
        "a gateway for a service that is nowhere", "{services: [gpt-os]}",
        (13, _KEY, "there is no service that it could send requests to"),
        (13, f"{_KEY}.services[0]", "no host of this fleet has a service 'gpt-os'; did you mean gpt-oss?"),
    ),
    _gateway(
        "a gateway before services on loopback", "{}",
        (5, "defaults.services.gpt-oss.listen", "listens on 127.0.0.1, where the gateway on front can not reach it"),
        service="",
    ),
    _gateway(
        "a gateway that can not know the key", "{}",
        (5, "defaults.services.gpt-oss.api_key", "the gateway on front can not know the API key that spark-1 makes"),
        (5, "defaults.services.gpt-oss.api_key", "the gateway on front can not know the API key that spark-2 makes"),
        service=", listen: 0.0.0.0",
    ),
    _gateway(
        "a client whose key is no secret's name", "{clients: {alice: {key: sk-1234}}}",
        (13, f"{_KEY}.clients.alice.key", "this is no name of a secret of this fleet; declare it under secrets:"),
    ),
    _gateway(
        "a certificate without a key", "{tls: {certificate: front.crt}}",
        (13, f"{_KEY}.tls", "give certificate and key, or host_file"),
    ),
    _gateway(
        "a certificate in two places", "{tls: {certificate: front.crt, key: front.key, host_file: /etc/front.pem}}",
        (13, f"{_KEY}.tls", "give certificate and key, or host_file, and not both"),
    ),
    _gateway(
        "a certificate that is not there", "{tls: {certificate: front.crt, key: fleet.yaml}}",
        (13, f"{_KEY}.tls.certificate", "no such file:"),
        (13, f"{_KEY}.tls.key", "fleet.yaml holds no private key in PEM form; name the file that has it"),
    ),
    _gateway(
        "a gateway at the port of its figures", "{metrics: {port: 8080}}",
        (13, f"{_KEY}.metrics.port", "the gateway and its metrics both want port 8080"),
    ),
    _gateway(
        "a gateway at the port of ssh", "{port: 22}",
        (13, f"{_KEY}.port", "port 22 of this host is for ssh; choose another one"),
    ),
    _gateway(
        "an agent at the port of a service", "{agent_port: 8000}",
        (13, f"{_KEY}.agent_port", "service gpt-oss of spark-1 has port 8000; choose another one"),
        (13, f"{_KEY}.agent_port", "service gpt-oss of spark-2 has port 8000; choose another one"),
    ),
    _gateway(
        "an agent at the port by which images pass", "{agent_port: 5599}",
        (13, f"{_KEY}.agent_port", "image.port of spark-1 has port 5599; choose another one"),
        (13, f"{_KEY}.agent_port", "image.port of spark-2 has port 5599; choose another one"),
    ),
    _gateway(
        "one key for two clients", "{clients: {alice: {key: other}, bob: {key: other}}}",
        (13, f"{_KEY}.clients.bob.key", "alice has the same key, by which clients are told apart"),
    ),
    _gateway(
        "a client with the key of the servers", "{clients: {alice: {key: key}}}",
        (13, f"{_KEY}.clients.alice.key", "service gpt-oss has this key, so the client could ask it without the"),
    ),
    _gateway(
        "a way of choosing that there is not", "{balance: random}",
        (13, f"{_KEY}.balance", "least_connections"),
    ),
    refusal(
        "a model's name that says something to HAProxy",
        """\
        fleet: office
        hosts:
          front:
            address: 10.0.0.10
            settings:
              services:
                text:
                  engine: vllm
                  model: {repository: a/b, served_as: "b\\"\\n  use_backend x", source: mine, size_gib: 1}
              gateway: {}
        """,
        (9, "hosts.front.settings.services.text.model", "the gateway on front can not tell requests for"),
    ),
    refusal(
        "one name for two models, one model by two names, and two keys",
        """\
        fleet: office
        secrets: {key: {env: HOME}, other: {env: HOME}}
        hosts:
          spark-1:
            address: 10.0.0.11
            settings:
              services:
                text: {engine: vllm, model: gpt-oss-120b, listen: 0.0.0.0, api_key: key}
          spark-2:
            address: 10.0.0.12
            settings:
              services:
                text: {engine: vllm, model: gpt-oss-20b, listen: 0.0.0.0, api_key: other}
          front:
            address: 10.0.0.10
            settings:
              services:
                fast: {engine: vllm, model: gpt-oss-120b}
              gateway: {}
        """,
        (13, "hosts.spark-2.settings.services.text.api_key", "service text has another API key on spark-1"),
        (13, "hosts.spark-2.settings.services.text.model", "serves gpt-oss-20b here and gpt-oss-120b on spark-1"),
        (19, "hosts.front.settings.gateway.services", "services text and fast both serve gpt-oss-120b"),
    ),
)  # fmt: skip
