"""Users and sessions (digest of version 1.0, basic of version 2.0, cookies), and the certificate for TLS."""

from __future__ import annotations

import base64
import datetime
import hmac
import ipaddress
import re
import secrets
import ssl
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import md5
from pathlib import Path

from twin.abb.rws.exchange import Condition, Refused
from twin.base.errors import TwinError

USERS = {"Default User": "robotics", "Admin": "robotics"}
"""Passwords by user, as every new controller has them."""

REALM = "validusers@robapi.abb"
IDLE = 300.0
"""Time in [s] after which a session without a request ends, as that of a controller does."""

MOST_SESSIONS, STRICT_SESSIONS, STRICT_RATE = 1000, 70, 20
"""Sessions that are kept, those of a controller, and its requests in a second (public notes)."""

MOST_NONCES = 10_000


@dataclass
class Session:
    """Session of a client.

    Attributes:
        name: value of the cookie `-http-session-`.
        number: value of the cookie `ABBCX`.
        used: time of the last request.
        times: times of the last requests, with `--strict`.
        sockets: number of open websockets, which keep the session.
    """

    name: str
    number: str
    used: float
    times: list[float] = field(default_factory=list)
    sockets: int = 0


class Sessions:
    """Sessions of clients, and the check of their passwords.

    Args:
        version: 1 for digest, 2 for basic authentication.
        strict: whether the limits of a controller hold.
    """

    def __init__(self, version: int, strict: bool = False) -> None:
        self._version, self._strict = version, strict
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._numbers: dict[str, str] = {}
        self._nonces: OrderedDict[str, tuple[float, set[str]]] = OrderedDict()

    @property
    def all(self) -> list[Session]:
        """Sessions, the one that was used longest ago first."""
        return list(self._sessions.values())

    def of_cookies(self, header: str) -> Session | None:
        """Return the session of a header with cookies, None if it has none that lives."""
        cookies = {one.partition("=")[0].strip(): one.partition("=")[2] for one in header.split(";")}
        with self._lock:
            name = cookies.get("-http-session-", "").strip('"')
            if name not in self._sessions:
                name = self._numbers.get(cookies.get("ABBCX", "").strip('"'), "")
            session, now = self._sessions.get(name), time.monotonic()
            if session is None:
                return None
            if now - session.used > IDLE and not session.sockets:
                self._end(session)
                return None
            if self._strict:
                session.times = [*(t for t in session.times if now - t < 1.0), now]
                if len(session.times) > STRICT_RATE:
                    raise Refused(Condition.HELD, f"more than {STRICT_RATE} requests in a second", 503)
            session.used = now
            self._sessions.move_to_end(name)
            return session

    def begin(self) -> Session:
        """Return a new session.

        Raises:
            Refused: a controller would not give a further one.
        """
        with self._lock:
            now = time.monotonic()
            for session in list(self._sessions.values()):
                if now - session.used > IDLE and not session.sockets:
                    self._end(session)
            if self._strict and len(self._sessions) >= STRICT_SESSIONS:
                raise Refused(Condition.HELD, f"a controller has {STRICT_SESSIONS} sessions", 503)
            if len(self._sessions) >= MOST_SESSIONS:
                self._end(next(iter(self._sessions.values())))
            session = Session(secrets.token_hex(16), str(secrets.randbits(62)), now)
            self._sessions[session.name], self._numbers[session.number] = session, session.name
            return session

    def lives(self, name: str) -> bool:
        """Return whether a session lives."""
        with self._lock:
            session = self._sessions.get(name)
            return session is not None and (session.sockets > 0 or time.monotonic() - session.used <= IDLE)

    def end(self, session: Session) -> None:
        """End a session."""
        with self._lock:
            self._end(session)

    def _end(self, session: Session) -> None:
        self._sessions.pop(session.name, None)
        self._numbers.pop(session.number, None)

    # ------------------------------------------------------------------------------------- passwords

    def challenge(self) -> str:
        """Return the header that asks a client for its password."""
        if self._version == 2:
            return f'Basic realm="{REALM}"'
        nonce = secrets.token_hex(16)
        with self._lock:
            self._nonces[nonce] = time.monotonic(), set()
            while len(self._nonces) > MOST_NONCES:
                self._nonces.popitem(last=False)
        return f'Digest realm="{REALM}", qop="auth", nonce="{nonce}", algorithm=MD5'

    def is_right(self, header: str, method: str) -> bool:
        """Return whether a header `Authorization` of a request is right, and was not sent before."""
        kind, _, rest = header.partition(" ")
        if self._version == 2 and kind.lower() == "basic":
            try:
                user, _, password = base64.b64decode(rest, validate=True).decode().partition(":")
            except ValueError:
                return False
            return user in USERS and hmac.compare_digest(password.encode(), USERS[user].encode())
        is_digest = self._version == 1 and kind.lower() == "digest"
        return is_digest and self._is_right_digest(_values(rest), method)

    def _is_right_digest(self, given: Mapping[str, str], method: str) -> bool:
        nonce, count = given.get("nonce", ""), given.get("nc", "")
        user = given.get("username", "")
        if user not in USERS or given.get("qop") != "auth":
            return False
        known = _md5(f"{user}:{REALM}:{USERS[user]}")
        asked = _md5(f"{method}:{given.get('uri', '')}")
        right = _md5(f"{known}:{nonce}:{count}:{given.get('cnonce', '')}:auth:{asked}")
        if not hmac.compare_digest(right.encode(), given.get("response", "").encode("utf-8")):
            return False
        with self._lock:
            began, counts = self._nonces.get(nonce, (0.0, None))
            if counts is None or count in counts or time.monotonic() - began > IDLE:
                return False  # a replay, or too old: the client gets a new one
            counts.add(count)
        return True


def _md5(text: str) -> str:
    return md5(text.encode(), usedforsecurity=False).hexdigest()


def _values(text: str) -> dict[str, str]:
    """Return the values of a header by their names."""
    found = re.findall(r'(\w+)=(?:"([^"]*)"|([^\s,]+))', text)
    return {name: quoted or plain for name, quoted, plain in found}


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
            made.write_bytes(_made_certificate())
            context.load_cert_chain(made)
    except (OSError, ssl.SSLError) as error:
        expected = "expected a PEM file with a private key and its certificate"
        raise TwinError(f"{file}: {expected}: {error}") from None
    return context


def _made_certificate() -> bytes:
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
