"""The CUDA toolkit, alone."""

from pyinfra import host

from modules.fleet import plan_of
from roles.cuda import cuda
from roles.site import site

plan = plan_of(host)
site(plan=plan)
cuda(plan=plan)
