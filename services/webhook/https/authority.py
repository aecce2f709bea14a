"""Certificates of our own: when they are made, and when made anew. ``now`` comes in.

One authority signs one server certificate. When the authority comes of age a second one joins
it, and both are believed; only when all API servers have had time to hear of it does it sign.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFE: Final = timedelta(days=3650)
SERVER_LIFE: Final = timedelta(days=365)
BACKDATED: Final = timedelta(hours=1)
"""Clocks differ."""
SETTLING: Final = timedelta(hours=1)
"""How long a new authority is only believed, before it signs."""

_BAD: Final = (ValueError, TypeError, x509.ExtensionNotFound)


@dataclass(frozen=True, slots=True)
class Served:
    """What a server shows, as PEM."""

    certificate: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Kept:
    """All that replicas share, as PEM."""

    bundle: str
    """The authorities that are to be believed, the newest first."""
    authority_key: str = field(repr=False)
    """Of the newest."""
    served: Served


def renewed(kept: Kept | None, hosts: Collection[str], now: datetime) -> Kept | None:
    """What is to be kept instead of ``kept``; None if it is good for ``hosts`` and for now."""
    found = _opened(kept, now)
    if found is None:
        return _afresh(hosts, now)
    authorities, key, server = found
    bundle = _pem(authorities)
    newest = authorities[0]
    if server is None or not set(hosts) <= set(_hosts(server)):
        # Replicas that go by other names, as during an upgrade, are not to fight over it.
        names = {*hosts, *(_hosts(server) if server is not None else ())}
        return Kept(bundle, _key_pem(key), _issued(newest, key, names, now))
    if now < _due(server):
        return _with_successor(kept, authorities, now) if now >= _due(newest) else None
    if now < newest.not_valid_before_utc + BACKDATED + SETTLING and len(authorities) > 1:
        return None
    if now >= _due(newest):
        return _with_successor(kept, authorities, now)
    return Kept(bundle, _key_pem(key), _issued(newest, key, _hosts(server), now))


def authorities_in(bundle: str) -> Sequence[x509.Certificate]:
    """The certificates of a bundle.

    Raises:
        ValueError: it is none.
    """
    return x509.load_pem_x509_certificates(bundle.encode())


def within(bundle: str, part: str) -> bool:
    """Whether all authorities of ``part`` are in ``bundle``, and there are some."""
    try:
        return set(authorities_in(part)) <= set(authorities_in(bundle))
    except ValueError:
        return False


def joined(bundles: Iterable[str], now: datetime) -> str:
    """The authorities of all ``bundles`` that hold, each once, in an order of their own.

    Raises:
        ValueError: one is none.
    """
    found = {each for bundle in bundles for each in authorities_in(bundle)}
    holding = [each for each in found if each.not_valid_after_utc > now] or found
    return _pem(sorted(holding, key=lambda one: (one.not_valid_before_utc, one.serial_number)))


def ends(certificate: str) -> datetime:
    """When a certificate ends.

    Raises:
        ValueError: it is none.
    """
    return x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc


def _opened(
    kept: Kept | None, now: datetime
) -> tuple[list[x509.Certificate], ec.EllipticCurvePrivateKey, x509.Certificate | None] | None:
    """The authorities that hold, the newest's key and the server's; None if of no use."""
    if kept is None:
        return None
    try:
        listed = authorities_in(kept.bundle)
        key = _loaded(kept.authority_key)
        if listed[0].public_key() != key.public_key() or listed[0].not_valid_after_utc <= now:
            return None
    except _BAD:
        return None
    holding = [each for each in listed if each.not_valid_after_utc > now]
    return holding, key, _server(kept.served, holding, now)


def _server(
    served: Served, authorities: Sequence[x509.Certificate], now: datetime
) -> x509.Certificate | None:
    try:
        server = x509.load_pem_x509_certificate(served.certificate.encode())
        if _loaded(served.key).public_key() != server.public_key():
            return None
        _hosts(server)
    except _BAD:
        return None
    signed = any(_signed(server, each) for each in authorities)
    return server if signed and server.not_valid_after_utc > now else None


def _signed(server: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        server.verify_directly_issued_by(authority)
    except (InvalidSignature, *_BAD):
        return False
    return True


def _afresh(hosts: Collection[str], now: datetime) -> Kept:
    key = ec.generate_private_key(ec.SECP256R1())
    authority = _authority(key, now)
    return Kept(_pem([authority]), _key_pem(key), _issued(authority, key, hosts, now))


def _with_successor(
    kept: Kept | None, authorities: Sequence[x509.Certificate], now: datetime
) -> Kept:
    assert kept is not None
    key = ec.generate_private_key(ec.SECP256R1())
    return Kept(_pem([_authority(key, now), *authorities]), _key_pem(key), kept.served)


def _due(certificate: x509.Certificate) -> datetime:
    """When it is to be made anew: after two thirds of its life."""
    begins, stops = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return begins + (stops - begins) * 2 / 3


def _authority(key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, f"Hekla webhooks {now:%Y-%m-%d}"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Hekla"),
        ]
    )
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    public = key.public_key()
    builder = _builder(name, name, public, now, now + AUTHORITY_LIFE)
    return (
        builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key, hashes.SHA256())
    )


def _issued(
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
    hosts: Collection[str],
    now: datetime,
) -> Served:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hekla-webhook")])
    stops = min(now + SERVER_LIFE, authority.not_valid_after_utc)
    subjects = [_general_name(host) for host in sorted(hosts)]
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    server = (
        _builder(name, authority.subject, key.public_key(), now, stops)
        .add_extension(x509.SubjectAlternativeName(subjects), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issuer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return Served(_pem([server]), _key_pem(key))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime,
    stops: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(stops)
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _hosts(server: x509.Certificate) -> Collection[str]:
    found = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = map(str, found.get_values_for_type(x509.IPAddress))
    return {*found.get_values_for_type(x509.DNSName), *addresses}


def _loaded(pem: str) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem.encode(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("the key is of another kind than ours")
    return key


def _pem(certificates: Sequence[x509.Certificate]) -> str:
    encoded = (each.public_bytes(serialization.Encoding.PEM) for each in certificates)
    return b"".join(encoded).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
