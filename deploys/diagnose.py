"""What is wrong, and what to do about it: reads logs, kernel messages, memory, clocks and versions. Changes nothing."""

from pyinfra import host

from modules.fleet import plan_of
from roles.diagnose import diagnosis

diagnosis(plan=plan_of(host))
