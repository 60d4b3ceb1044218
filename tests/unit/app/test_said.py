"""What is repeated of what the API server says: one line, and not without end."""

import pytest

from app.kube.said import LONGEST, said


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"kind": "Status", "message": "pods \\"p\\" not found", "code": 404}', 'pods "p" not found'),
        ('{"message": "as text"}', "as text"),
        (b'{"message": "a\\nb"}', "a b"),
        (b'{"message": 5}', '{"message": 5}'),
        (b"<html>\n<body>a proxy</body>", "<html> <body>a proxy</body>"),
        (b"\xff", "\N{REPLACEMENT CHARACTER}"),
        (b"", ""),
        (None, ""),
        (b"[" * 100_000, "[" * LONGEST),
        (b'{"message": "%s"}' % (b"x" * 100_000), "x" * LONGEST),
    ],
)
def test_it_is_one_line_for_people(body, expected):
    assert said(body) == expected
