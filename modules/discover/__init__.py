"""Finding Sparks on the local network, and writing them down as a fleet file."""
