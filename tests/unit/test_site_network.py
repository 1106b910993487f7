"""The site's files, as the fleet file's network settings make them."""

from __future__ import annotations

from modules.operations.site import APT_PROXY, NETWORK_ENVIRONMENT, apt_proxy, network_environment, site_files
from modules.spec.network import Network, Proxy

CLOSED = Network(
    ca_bundle="ca.pem",
    proxy=Proxy(http="http://proxy:3128", https="http://proxy:3128", no_proxy=("mirror", ".site", "10.0.0.0/8")),
    pip_index="https://pypi.lab/simple/",
    hub="https://hub.lab",
)


def test_an_open_network_needs_no_variables_and_no_files_but_the_environment() -> None:
    assert network_environment(Network()) == {}
    files = {file.path: file.content for file in site_files(Network(), None)}
    assert files.pop(NETWORK_ENVIRONMENT) == "# The site's network, from the fleet file.\n"
    assert set(files.values()) == {None}


def test_every_setting_becomes_its_variable() -> None:
    assert network_environment(CLOSED) == {
        "http_proxy": "http://proxy:3128",
        "https_proxy": "http://proxy:3128",
        "no_proxy": "mirror,.site,10.0.0.0/8",
        "HTTP_PROXY": "http://proxy:3128",
        "HTTPS_PROXY": "http://proxy:3128",
        "NO_PROXY": "mirror,.site,10.0.0.0/8",
        "HF_ENDPOINT": "https://hub.lab",
        "PIP_INDEX_URL": "https://pypi.lab/simple/",
        "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt",
        "REQUESTS_CA_BUNDLE": "/etc/ssl/certs/ca-certificates.crt",
    }


def test_apt_goes_directly_to_named_hosts_only() -> None:
    assert apt_proxy(CLOSED.proxy) == (
        'Acquire::http::Proxy "http://proxy:3128";\n'
        'Acquire::https::Proxy "http://proxy:3128";\n'
        'Acquire::http::Proxy::mirror "DIRECT";\n'
        'Acquire::https::Proxy::mirror "DIRECT";\n'
    )
    assert apt_proxy(Proxy(no_proxy=("mirror",))) is None


def test_files_that_can_hold_a_proxy_password_are_roots_alone() -> None:
    modes = {file.path: file.mode for file in site_files(CLOSED, "PEM")}
    assert modes[NETWORK_ENVIRONMENT] == modes[APT_PROXY] == "600"
