"""The network between Sparks: who has which address, what netplan is told, what NCCL is told. No I/O."""

from modules.fabric.addresses import address_for, address_of, ends_of, own_links, rendezvous_address
from modules.fabric.environment import engine_environment, environment_text
from modules.fabric.ports import PlannedPort, Port, PortsError, planned_ports

__all__ = [
    "PlannedPort",
    "Port",
    "PortsError",
    "address_for",
    "address_of",
    "ends_of",
    "engine_environment",
    "environment_text",
    "own_links",
    "planned_ports",
    "rendezvous_address",
]
