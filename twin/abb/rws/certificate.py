"""Certificate of a server of Robot Web Services over TLS: a user's, or one that is made for the session."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import tempfile
from pathlib import Path

from twin.base.errors import TwinError


def tls_context(file: Path | None) -> ssl.SSLContext:
    """Return the context of a server.

    Args:
        file: PEM with a private key and its certificate; None to make them.

    Raises:
        TwinError: the file cannot be used, or `cryptography` is not installed.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        if file is not None:
            context.load_cert_chain(file)
            return context
        with tempfile.TemporaryDirectory(prefix="irb-twin-tls-") as folder:
            made = Path(folder) / "server.pem"
            made.touch(0o600)
            made.write_bytes(_made())
            context.load_cert_chain(made)
    except (OSError, ssl.SSLError) as error:
        raise TwinError(
            f"{file}: expected a PEM file with a private key and its certificate: {error}"
        ) from None
    return context


def _made() -> bytes:
    """Return a new key with a certificate that it signs itself, for this machine, valid for 30 days."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise TwinError(
            "RWS 2.0 needs a certificate: --certificate FILE.pem, or install `cryptography` (extra tls)"
        ) from None
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "irb-twin")])
    now = datetime.datetime.now(datetime.timezone.utc)
    hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8
    private = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    return private + certificate.public_bytes(serialization.Encoding.PEM)
