"""Reads answers of other servers, each up to a limit, since these servers decide how long an answer is."""

import aiohttp


async def read_at_most(content: aiohttp.StreamReader, most: int) -> bytes:
    """Returns an answer; of one with more than ``most`` bytes the first ``most + 1``."""
    body = b""
    while chunk := await content.read(most + 1 - len(body)):
        body += chunk
    return body
