"""What a controller does every night for a fleet: look for drift, hold every host to its gate, and write down both."""
