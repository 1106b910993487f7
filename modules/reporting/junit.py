"""The report in the form that every CI reads: a suite for each host, a case for each gated service and metric."""

from __future__ import annotations

from xml.etree import ElementTree

from modules.gating.judgement import Verdict
from modules.reporting.report import FleetReport, GateReport, HostReport, MetricReport, ServiceReport
from modules.reporting.wording import amount


def junit_xml(report: FleetReport) -> str:
    """A warning passes, with its reason in the case's output. What was not measured is an error, never a pass."""
    suites = [_suite(report, host) for host in report.hosts]
    root = ElementTree.Element("testsuites", name=f"tinderbox {report.fleet}")
    root.extend(suites)
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(report: FleetReport, host: HostReport) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=host.name, timestamp=report.generated.removesuffix("Z"))
    if host.simulated:
        properties = ElementTree.SubElement(suite, "properties")
        ElementTree.SubElement(properties, "property", name="simulated", value="true")
    for service in host.services:
        if service.gated:
            suite.append(_serves(host, service))
            suite.extend(_cases(host, service))
    for count, child in (("tests", "testcase"), ("failures", "testcase/failure"), ("errors", "testcase/error")):
        suite.set(count, str(len(suite.findall(child))))
    return suite


def _serves(host: HostReport, service: ServiceReport) -> ElementTree.Element:
    """What it measured once says nothing of a server that does not run now."""
    case = ElementTree.Element("testcase", classname=f"{host.name}.{service.name}", name="serves")
    if service.state == "unknown":
        message = "it is not known whether it serves"
        message += "" if host.trouble is None else f"; the host does not tell: {host.trouble}"
        ElementTree.SubElement(case, "error", message=message)
    elif service.state != "running":
        ElementTree.SubElement(case, "failure", message=f"{service.state}: {service.unit or 'no unit'}")
    return case


def _cases(host: HostReport, service: ServiceReport) -> list[ElementTree.Element]:
    where = f"{host.name}.{service.name}"
    if service.gate is None:
        case = ElementTree.Element("testcase", classname=where, name="gate")
        message = "not measured" if host.trouble is None else f"not measured; the host does not tell: {host.trouble}"
        ElementTree.SubElement(case, "error", message=message)
        return [case]
    judged = [metric for metric in service.gate.metrics if metric.verdict is not None]
    return [
        *(_fault(where, name, fault) for name, fault in service.gate.faults.items()),
        *(_case(where, service.gate, metric) for metric in judged),
    ]


def _fault(where: str, workload: str, fault: str) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname=where, name=workload)
    ElementTree.SubElement(case, "failure", message=fault)
    return case


def _case(where: str, gate: GateReport, metric: MetricReport) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname=where, name=metric.name)
    now = "not measured"
    if metric.now is not None:
        now = f"{amount(metric.now.mean)} ± {amount(metric.now.std)} {metric.unit} over {metric.now.runs} runs"
    if metric.verdict is Verdict.FAIL:
        message = f"{now}: {metric.reason}" if metric.reason else now
        failure = ElementTree.SubElement(case, "failure", message=message)
        failure.text = "\n".join(f"likely cause: {cause.cause}. {cause.action}" for cause in gate.causes) or None
    else:
        words = f"{metric.verdict}: {now}" + (f", {metric.reason}" if metric.reason else "")
        ElementTree.SubElement(case, "system-out").text = words
    return case
