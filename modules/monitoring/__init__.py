"""What watches a fleet, as text: exporters' settings, units, Prometheus' configuration and rules, dashboards. Pure."""
