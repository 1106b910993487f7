"""Measurements of Tinderbox against a peer, both in one run on the same hosts. `make bench`, `make bench ONLY=name`."""
