"""The key of the language model service: read from the environment, never shown."""

from __future__ import annotations

import html
import json
import os
import re
import urllib.parse
from typing import NoReturn

from subspaces.errors import UserError

VARIABLES = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
HIDDEN = "[key hidden]"
_SHAPE = re.compile(r"AIza[0-9A-Za-z_-]{30,}")  # any key of this service, also somebody else's


class ApiKey:
    """A key that does not show itself: not when printed, not in a traceback with local variables, not when pickled."""

    __slots__ = ("_forms", "_value")

    def __init__(self, value: str):
        self._value = value
        forms = {value, urllib.parse.quote(value, safe=""), json.dumps(value)[1:-1], html.escape(value)}
        self._forms = re.compile(
            "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True)), re.IGNORECASE
        )

    @classmethod
    def from_environment(cls) -> ApiKey:
        """GEMINI_API_KEY, else GOOGLE_API_KEY."""
        for name in VARIABLES:
            value = os.environ.get(name, "").strip()
            if value:
                # A key that cannot be a header would be shown by the error of the library that refuses it.
                if len(value) < 8 or not value.isascii() or not value.isprintable() or " " in value:
                    raise UserError(
                        f"{name} does not hold a key: it is very short, or has spaces or unusual characters. Set it again."
                    )
                return cls(value)
        raise UserError(
            f"no key: set the environment variable {VARIABLES[0]} (or {VARIABLES[1]}) to your key of the Gemini API and run again. "
            "Keys are read from the environment only, never from the command line or a file."
        )

    def reveal(self) -> str:
        """For the client library alone."""
        return self._value

    def redact(self, text: str) -> str:
        """`text` without the key, also where it is escaped, and without anything that has the shape of such a key."""
        return _SHAPE.sub(HIDDEN, self._forms.sub(HIDDEN, text))

    def __repr__(self) -> str:
        return "ApiKey(hidden)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key cannot be stored")
