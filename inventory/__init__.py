"""Fleet files, and what pyinfra is told of them."""

from inventory.groups import pyinfra_groups

__all__ = ["pyinfra_groups"]
