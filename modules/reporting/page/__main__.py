"""`python -m modules.reporting.page`: write the fleet's report as a page, as JSON, for a CI and for Prometheus.

They land in `reports/<fleet>/`, or in the folder that `--folder` names.
"""

from __future__ import annotations

import sys

from modules.reporting.page.write import main

sys.exit(main(sys.argv[1:]))
