"""Servers that already run on a host, whoever started them: described as services, and taken over."""
