"""What was measured of a host's loads → what reports tell of it. Pure."""

from __future__ import annotations

from modules.fleet import ServicePlan
from modules.loading import DeviceWays, Rates, load_seconds, recommend, slow_load
from modules.loading.rates import reading_of
from modules.loading.recommend import Recommendation
from modules.reporting.report import LoadReport

_GB = 1e9


def load_report(plan: ServicePlan, rates: Rates | None, ways: DeviceWays | None) -> LoadReport | None:
    """Of the service as the fleet file has it; None where the reading of its files was not measured."""
    if rates is None:
        return None
    way, found = reading_of(rates, plan.flags)
    return LoadReport(
        bytes=rates.bytes,
        disk=" ".join(rates.disk[key] for key in ("model", "source", "type") if key in rates.disk),
        way=way,
        cold=found.cold,
        warm=found.warm,
        direct=rates.direct,
        seconds=load_seconds(rates, plan.flags),
        limit_s=plan.model.load_seconds,
        slow=slow_load(rates, plan.flags, plan.model.load_seconds) or "",
        advice="" if ways is None else advice_text(plan, advice_of(plan, ways)),
    )


def advice_of(plan: ServicePlan, ways: DeviceWays) -> Recommendation | None:
    """The way of loading that the service should take by what was measured."""
    return recommend(ways, plan.flags, {**plan.engine.environment, **plan.service.environment})


def advice_text(plan: ServicePlan, advice: Recommendation | None) -> str:
    """What to do about it, for people."""
    if advice is None:
        return "nothing to recommend: no way that the engine can be told to take was measured"
    if not advice.change:
        return f"the engine's way of loading is the best that was measured: {advice.reason}"
    settings = [f"flags.load-format: {advice.setting.load_format}"]
    settings += [f"environment.{name}: {value}" for name, value in advice.setting.environment.items()]
    return f"faster by what was measured: {', '.join(settings)} under services.{plan.name} ({advice.reason})"


def load_line(load: LoadReport) -> str:
    """The figures in a line, for people."""
    disk = "" if load.direct is None else f", the disk itself gives {load.direct / _GB:.2f} GB/s"
    limit = "" if load.limit_s is None else f" (limit {load.limit_s:.0f} s)"
    seconds = f"{load.seconds:.0f}" if load.seconds >= 1 else f"{load.seconds:.1f}"
    return (
        f"{load.bytes / _GB:.1f} GB of weights load in {seconds} s or more{limit}: {load.way} at "
        f"{load.cold / _GB:.2f} GB/s from the disk, {load.warm / _GB:.2f} from memory{disk}"
    )
