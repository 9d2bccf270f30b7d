"""`Lines`: where in a file of constraints something stands."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["Lines"]

_HEADER = re.compile(r"\s*\[\[\s*(constraint|\"constraint\")\s*\]\]")


class Lines:
    """The lines of a file of constraints.

    Parameters
    ----------
    text : str
        The file.
    source : str
        What messages call it.

    Attributes
    ----------
    titles : list of str
        The titles of the constraints, in their order, when they are known.
    """

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self.titles: list[str] = []
        self._lines = text.splitlines()
        self._headers = [k for k, line in enumerate(self._lines) if _HEADER.match(line)]

    def of(self, number: int | None, key: str | None = None, value: Any = None) -> int:
        """Return the line of a key or a value, counted from 1.

        Parameters
        ----------
        number : int or None
            Which constraint; None: what stands before them.
        key : str or None
            A key of it.
        value : object
            A value of it.

        Returns
        -------
        int
            The line of the value if it is found there, else of the key, else of the header.
        """
        begin, end = 0, self._headers[0] if self._headers else len(self._lines)
        if number is not None and number < len(self._headers):
            begin = self._headers[number]
            later = self._headers[number + 1 : number + 2]
            end = later[0] if later else len(self._lines)
        for k in range(begin, end):
            line = self._lines[k]
            if value is not None and (f'"{value}"' in line or f"'{value}'" in line):
                return k + 1
            if value is not None and re.search(
                rf"(?<![\w.]){re.escape(str(value))}(?![\w.])", line
            ):
                return k + 1
            if value is None and key is not None:
                written = (
                    rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]|\s*\[constraint\.{re.escape(key)}\]"
                )
                if re.match(written, line):
                    return k + 1
        return begin + 1

    def place(self, title: str, value: Any = None) -> str:
        """Return file and line of the constraint with a title, or of a value of it.

        Parameters
        ----------
        title : str
            The title.
        value : object
            A value of it.

        Returns
        -------
        str
            For example ``rules.toml, line 7``.
        """
        number = self.titles.index(title) if title in self.titles else None
        return f"{self.source}, line {self.of(number, None, value)}"
