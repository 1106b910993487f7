"""The site's network settings on a host: proxies, mirrors and certificate authorities."""

from __future__ import annotations

from collections.abc import Generator

from pyinfra import host
from pyinfra.api import StringCommand, operation

from modules.facts.site import CERTIFICATE, SiteSettings, SiteState
from modules.facts.survey import Question
from modules.operations.differences import differs, files_differ
from modules.operations.managed_files import ManagedFile, settle, unsettled
from modules.operations.require import unreadable
from modules.spec.network import Network, Proxy

NETWORK_ENVIRONMENT = "/etc/tinderbox/network.env"
APT_PROXY = "/etc/apt/apt.conf.d/95tinderbox-proxy"
TRUST_STORE = "/etc/ssl/certs/ca-certificates.crt"


def proxy_environment(proxy: Proxy) -> dict[str, str]:
    """The proxy's variables, in both spellings: curl reads only the small http_proxy, Go and Python take either."""
    given = {"http_proxy": proxy.http, "https_proxy": proxy.https, "no_proxy": ",".join(proxy.no_proxy) or None}
    found = {name: value for name, value in given.items() if value is not None}
    return found | {name.upper(): value for name, value in found.items()}


def network_environment(network: Network) -> dict[str, str]:
    """What everything that fetches on a host needs in its environment. Empty for an open network."""
    variables = proxy_environment(network.proxy)
    if network.hub is not None:
        variables["HF_ENDPOINT"] = network.hub
    if network.pip_index is not None:
        variables["PIP_INDEX_URL"] = network.pip_index
    if network.bundle is not None:
        # Nobody shall wait for a network that is not there, or find that it is.
        variables |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": f"{network.bundle}/wheels", "HF_HUB_OFFLINE": "1"}
    if network.ca_bundle is not None:
        # Python packages bring certificates of their own and look at the system's only when told to.
        variables |= dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), TRUST_STORE)
    return variables


def environment_file(variables: dict[str, str]) -> str:
    """The text of a file that systemd's EnvironmentFile= and a shell both read."""
    return "# The site's network, from the fleet file.\n" + "".join(
        f'{name}="{value}"\n' for name, value in variables.items()
    )


def apt_proxy(proxy: Proxy) -> str | None:
    """Configuration of apt for the proxy, None without one. It knows whole host names only: no domains, no networks."""
    lines = [
        f'Acquire::{scheme}::Proxy "{url}";\n'
        for scheme, url in (("http", proxy.http), ("https", proxy.https))
        if url is not None
    ]
    if not lines:
        return None
    direct = [name for name in proxy.no_proxy if not name.startswith((".", "*")) and "/" not in name]
    lines += [f'Acquire::{scheme}::Proxy::{name} "DIRECT";\n' for name in direct for scheme in ("http", "https")]
    return "".join(lines)


def site_files(network: Network, ca_bundle: str | None) -> list[ManagedFile]:
    """Every file of the site on a host; those without a setting are to be absent. Proxies can hold a password: 600."""
    return [
        ManagedFile(NETWORK_ENVIRONMENT, environment_file(network_environment(network)), mode="600"),
        ManagedFile(APT_PROXY, apt_proxy(network.proxy), mode="600"),
        ManagedFile(CERTIFICATE, None if ca_bundle is None else ca_bundle.rstrip("\n") + "\n"),
    ]


def settings_there(files: list[ManagedFile]) -> Question[SiteState]:
    """What the host has of them."""
    return Question(SiteSettings, {"paths": [file.path for file in files]})


@operation()
def site_settled(network: Network, ca_bundle: str | None) -> Generator[StringCommand, None, None]:
    """Bring the site's files and the trust store to what the fleet file says; what is unset there is taken away.

    + network: the host's network settings
    + ca_bundle: text of the certificates (PEM) to trust, None for none
    """
    files = site_files(network, ca_bundle)
    found = settings_there(files).of(host)
    if found is None:
        yield from unreadable("the site's settings")
        return
    changes = unsettled(files, found.files)
    certificate_changes = any(file.path == CERTIFICATE for file in changes)
    if not changes and found.trust_is_fresh:
        host.noop("the site's settings are in place")
        return
    # A proxy's address can hold a password.
    files_differ(changes, found.files, secret=(NETWORK_ENVIRONMENT, APT_PROXY))
    if not found.trust_is_fresh:
        differs(TRUST_STORE, "is older than the certificates that it is made of")
    yield from settle(changes)
    if certificate_changes or not found.trust_is_fresh:
        yield StringCommand("update-ca-certificates", "--fresh" if ca_bundle is None else "")
