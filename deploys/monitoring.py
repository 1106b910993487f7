"""What watches the hosts, alone; also where the fleet file asks for none of it any more."""

from pyinfra import host

from modules.fleet import plan_of
from roles.monitoring import monitoring
from roles.site import site

plan = plan_of(host)
site(plan=plan)
monitoring(plan=plan, asked=True)
