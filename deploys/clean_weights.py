"""Remove revisions of models that no release needs, where `weights.remove_unneeded` is set; `--dry` lists them."""

from pyinfra import host

from modules.fleet import plan_of
from roles.weights.clean import clean_weights

clean_weights(plan=plan_of(host))
