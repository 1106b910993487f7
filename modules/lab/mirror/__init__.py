"""The lab's outside world: hub, encodings, apt, wheels and registry, by TLS, out of plain files.

Standard library only: the lab mirror container runs it with Debian's Python and nothing else.
"""
