"""What pyinfra loads for `benchmarks.scale`: as many hosts as $SCALE_HOSTS says, none of which is real.

Each answers as the host did whose answers are in $SCALE_ANSWERS, after $SCALE_DELAY seconds.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from modules.fleet import load_fleet

_fleet = load_fleet()
_pattern = next(iter(_fleet.hosts.values()))
_names = [f"@fake/spark-{number:04}" for number in range(1, int(os.environ["SCALE_HOSTS"]) + 1)]
_data = {
    "fake_responses": json.loads(Path(os.environ["SCALE_ANSWERS"]).read_text()),
    "fake_delay": float(os.environ["SCALE_DELAY"]),
    "fake_delay_jitter": 0.0,
}
# pyinfra's connector has its own name in those of its hosts.
_fleet.hosts.update({name: _pattern.model_copy(update={"name": name}) for name in _names})
sparks = [(name, _data) for name in _names]
