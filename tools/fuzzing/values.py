"""Values that programs tend to get wrong: edges of types, odd texts, odd bytes."""

from __future__ import annotations

import math
import random
from typing import Any

__all__ = ["BYTES", "INTEGERS", "REALS", "TEXTS", "count", "scalar"]

INTEGERS = (
    *(0, 1, -1, 2, 3, 7, 63, 64, 65, 127, 128, 255, 256, 1000, 65535, 65536),
    *(2**31 - 1, 2**31, -(2**31), 2**32 - 1, 2**32, 2**53, 2**53 + 1),
    *(2**63 - 1, 2**63, -(2**63), 2**64 - 1, 2**64, 10**30, 10**600),
)
REALS = (
    *(0.0, -0.0, 0.5, -1.0, 1.5, 1e-9, 1e-45, 5e-324, 1e16, 1e30, 3.4e38, 3.5e38, 1e300, -1e308),
    *(math.nan, math.inf, -math.inf),
)
TEXTS = (
    *("", " ", "\t", "0", "-1", "1e30", "-1e30", "1e-320", "1e999", "nan", "inf", "-inf"),
    *("1e", "0x10", "1_000", "1,5", "99999999999999999999", "-9223372036854775808", "+1"),
    *("O", "B-", "I-NP", "-NP", "__BOS__", "_", "#", "# x", "%", "%x[0,0]", ":", "a:b:c", "qid:1"),
    *("\x00", "\x1b[31m", "\r", "\x7f", "\x85", "\u2028", "\u202e", "\ufeff", "\ufffd", "ß", "İ"),
    *("\U0010ffff", "猫", "e\u0301", "'", '"', "\\", "\\t", "../x", "null", "true", "a" * 300),
)
BYTES = (
    *(b"\x00", b"\t", b"\n", b"\r", b"\r\n", b"\n\n", b" ", b"\x0b", b"\x1b", b"\x7f", b":", b"\\"),
    *(b"#", b"%", b"[", b"]", b",", b'"', b"-", b"+", b".", b"*", b"=", b"|", b"0", b"9", b"_"),
    *(b"\x80", b"\xbf", b"\xc0\x80", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xff"),
    *(b"\xef\xbb\xbf", b"\xff\xfe", b"\xe2\x80\xae", b"\xc2\x85", b"\xf0\x9f\x98\x80", b"\x1f\x8b"),
)


def scalar(rng: random.Random) -> Any:
    """Return some value that JSON can hold and that is no list or dict."""
    return rng.choice(
        (None, True, False, rng.choice(INTEGERS), rng.choice(REALS), rng.choice(TEXTS))
    )


def count(rng: random.Random) -> int:
    """Return how many changes an input gets: mostly one, so that the rest stays good."""
    return rng.choice((1, 1, 1, 1, 2, 2, 3, 5, 9))
