"""A page of the fleet, JSON, JUnit and Prometheus' textfile, in reports/<fleet>/. Changes nothing on any host."""

from pyinfra import host

from modules.fleet import plan_of
from roles.report import report

report(plan=plan_of(host))
