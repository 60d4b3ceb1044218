"""When the certificates and the token that we show end, as a metric."""

import base64
import json
import ssl
from contextlib import suppress
from datetime import UTC, datetime

from app.observability import metrics

UTC_TIME, VERSION = 0x17, 0xA0
"""Tags of DER: a time with two digits for the year, and the optional first field of a certificate."""


def note_certificate(use: str, pem: bytes | None) -> None:
    """Exports when the first certificate of a PEM file ends; nothing if there is none that can be read."""
    _export(use, end_of_certificate(pem) if pem else None)


def note_token(token: str) -> None:
    """Exports when a token ends; nothing if it does not say so."""
    _export("token", end_of_token(token))


def _export(use: str, end: float | None) -> None:
    if end is None:
        with suppress(KeyError):  # it may not have been known before either
            metrics.EXPIRY.remove(use)
    else:
        metrics.EXPIRY.labels(use).set(end)


def end_of_certificate(pem: bytes) -> float | None:
    """Returns when the first certificate of a PEM file ends, in seconds since 1970; None if it cannot be read.

    Goes through the DER as RFC 5280, section 4.1, lays it out: notAfter is the second time of the validity. The ssl
    module shows it only for certificates of peers and of authorities.
    """
    begin, end = pem.find(b"-----BEGIN CERTIFICATE-----"), pem.find(b"-----END CERTIFICATE-----")
    try:
        der = ssl.PEM_cert_to_DER_cert(pem[begin:end].decode("ascii") + "-----END CERTIFICATE-----")
        _, at, _ = _element(der, 0)  # the certificate
        _, at, _ = _element(der, at)  # what is signed of it
        tag, _, after = _element(der, at)
        for _ in range(4 if tag == VERSION else 3):  # version, serial number, algorithm, issuer
            at = after
            _, _, after = _element(der, at)
        at = _element(der, at)[1]  # the validity
        at = _element(der, at)[2]  # after notBefore
        tag, start, after = _element(der, at)
        text = der[start:after].decode("ascii")
        if tag == UTC_TIME:
            text = ("19" if text >= "5" else "20") + text
        return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except (ValueError, IndexError):
        return None


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    """Returns the tag of an element of DER, and where its content begins and ends."""
    tag, length, start = der[at], der[at + 1], at + 2
    if length & 0x80:
        digits = length & 0x7F
        length, start = int.from_bytes(der[start : start + digits]), start + digits
    return tag, start, start + length


def end_of_token(token: str) -> float | None:
    """Returns when a JSON Web Token ends, in seconds since 1970; None if it has no end, or is another kind of token."""
    try:
        _, payload, _ = token.split(".")
        said = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(said["exp"])
    except (ValueError, KeyError, TypeError):
        return None
