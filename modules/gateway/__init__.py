"""The fleet's one endpoint: HAProxy's configuration and units as text. Pure."""
