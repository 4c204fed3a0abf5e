"""Every request has its own client address and the credential of its operation, as many clients would send them."""

import itertools
import os
from urllib.parse import quote

import schemathesis

NUMBERS = itertools.count(1)
SESSION = os.environ["TEST_SESSION"]
SCIM_TOKEN = os.environ["TEST_SCIM_TOKEN"]


# The parser of HTTP refuses longer targets with 431 (headers_too_large) before any operation is known.
LONGEST_TARGET = 8_000


@schemathesis.hook
def filter_case(context, case):
    parts = [*(case.path_parameters or {}).values(), *(case.query or {}).values()]
    return len(quote("".join(map(str, parts)))) < LONGEST_TARGET


@schemathesis.hook
def before_call(context, case, kwargs):
    number = next(NUMBERS)
    headers = case.headers
    headers["X-Forwarded-For"] = f"172.{16 + (number >> 16 & 15)}.{number >> 8 & 255}.{number & 255}"
    if case.path.startswith("/scim/"):
        headers["Authorization"] = f"Bearer {SCIM_TOKEN}"
    elif not case.path.startswith("/oauth/"):
        headers["Authorization"] = f"Bearer {SESSION}"
