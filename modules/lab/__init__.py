"""The lab: simulated Sparks on this machine, with an outside world of their own.

Everything but the GPU is real: systemd, sshd, apt with signed repositories, an inner dockerd, a Hugging Face hub.
`python -m modules.lab up` starts it, `python -m modules.lab down` takes it away.
"""
