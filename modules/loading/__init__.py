"""How long a host needs to load a model, and by which way it is loaded fastest. Pure."""

from modules.loading.rates import Rates, Reading, load_seconds, slow_load
from modules.loading.recommend import Recommendation, recommend, shown_ways
from modules.loading.ways import DeviceWays, WayFigures

__all__ = [
    "DeviceWays",
    "Rates",
    "Reading",
    "Recommendation",
    "WayFigures",
    "load_seconds",
    "recommend",
    "shown_ways",
    "slow_load",
]
