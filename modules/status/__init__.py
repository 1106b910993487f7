"""How the hosts of a fleet and their services are at this moment."""
