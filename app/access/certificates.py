"""Certificates of a listener, reloaded when their files change: new connections use them, others continue."""

import asyncio
import ssl

import structlog

from app.observability import expiry, metrics
from app.settings import InvalidSettings, TlsFiles

log = structlog.get_logger(__name__)

LOOK_AGAIN = 2.0
"""Seconds between two checks of the files. They are read each time, as a mount in a pod changes by a link."""


class Certificates:
    """A TLS context that presents the current certificate files, and asks clients for a certificate of the client CA.

    ``context`` stays the same object; each handshake switches to the newest context that could be loaded.
    """

    def __init__(self, files: TlsFiles) -> None:
        """Raises InvalidSettings if the files cannot be used."""
        self._files = files
        self._paths = [path for path in (files.cert, files.key, files.client_ca) if path is not None]
        try:
            self._seen = self._read()
            self._newest = self._load()
            self.context = self._load()
        except (OSError, ValueError) as error:  # an SSLError is an OSError
            raise InvalidSettings(f"tls: {self._names()} cannot be used: {error}") from error
        self.context.sni_callback = self._take_newest
        self._problem = ""
        metrics.CERTIFICATES_USABLE.set(1)
        expiry.note_certificate("serving", self._seen[0])

    async def follow(self) -> None:
        """Checks the files repeatedly until cancelled."""
        while True:
            await asyncio.sleep(LOOK_AGAIN)
            self.look()

    def look(self) -> None:
        """Loads the files if they have changed. Keeps the old certificates if that fails."""
        try:
            found = self._read()
            if found != self._seen:
                self._newest = self._load()
                self._seen = found
                expiry.note_certificate("serving", found[0])
                log.info("certificates loaded", files=self._names())
        except (OSError, ValueError) as error:
            metrics.CERTIFICATES_USABLE.set(0)
            if str(error) != self._problem:  # logged once, not at every check
                log.error("certificates cannot be loaded", files=self._names(), error=str(error))
            self._problem = str(error)
        else:
            metrics.CERTIFICATES_USABLE.set(1)
            self._problem = ""

    def _take_newest(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._newest

    def _read(self) -> list[bytes]:
        return [path.read_bytes() for path in self._paths]

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # A resumed session would bring its certificate unchecked.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        context.load_cert_chain(self._files.cert, self._files.key)
        if self._files.client_ca is not None:
            context.load_verify_locations(cafile=self._files.client_ca)
            context.verify_mode = ssl.CERT_OPTIONAL  # REST uses tokens on the same port
        return context

    def _names(self) -> str:
        return ", ".join(map(str, self._paths))
