"""What check tells of a fleet: a verdict for each host, what it costs and what to do, and what a deploy would do."""
