"""What the services of a fleet log: of all hosts, in the order of time."""
