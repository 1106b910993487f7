"""The owner's key, sudo without a password, the docker group. The first login, by password, comes before it."""

from pyinfra import host

from modules.bootstrap.own_keys import line_of
from modules.fleet import load_fleet
from roles.bootstrap import bootstrap

ssh = load_fleet().hosts[host.name].ssh
bootstrap(ssh=ssh, line=line_of(ssh))
