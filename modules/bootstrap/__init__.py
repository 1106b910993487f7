"""The first login: from a host that only lets a password in to one that takes a key, and sudo that asks nothing."""
