"""Ask hosts of a fleet side by side, without a run of pyinfra, by the same connections as its runs make."""
