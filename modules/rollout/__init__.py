"""How a change goes over a fleet: canary first, then batch after batch, until it is everywhere or hosts have failed."""
