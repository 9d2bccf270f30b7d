r"""A stream of column text, cut behind its blank lines as it comes in."""

from __future__ import annotations

__all__ = ["SequenceCutter"]

#: What ends a sequence: the end of a line and a blank line behind it.
_MARKS = (b"\n\n", b"\n\r\n")
#: A mark that is not complete yet has at most so many bytes.
_TAIL = max(map(len, _MARKS)) - 1


class SequenceCutter:
    r"""Collects pieces of a stream and gives back what holds whole sequences.

    Only new bytes are searched, and a sequence is copied once, when it is complete: the work is
    proportional to the length of the stream, however long its sequences are.

    Attributes
    ----------
    n_searched : int
        Bytes that were searched for the end of a sequence.

    Examples
    --------
    >>> cutter = SequenceCutter()
    >>> cutter.add(b"dogs N")
    b''
    >>> cutter.add(b"\n\nbark V\n")
    b'dogs N\n\n'
    >>> cutter.rest()
    b'bark V\n'
    """

    def __init__(self) -> None:
        self._held = bytearray()  # grows without a copy of all of it each time
        self.n_searched = 0

    def add(self, chunk: bytes) -> bytes:
        """Take more of the stream.

        Parameters
        ----------
        chunk : bytes
            What came in.

        Returns
        -------
        bytes
            All that is held up to the last blank line; empty if no sequence has ended.
        """
        # A mark may begin in what was there before, but it does not end there.
        begin = max(0, len(self._held) - _TAIL)
        self._held += chunk
        self.n_searched += len(self._held) - begin
        ends = [at + len(m) for m in _MARKS if (at := self._held.rfind(m, begin)) >= 0]
        return self._take(max(ends, default=0))

    def rest(self) -> bytes:
        """Return all that is held, because the stream has ended."""
        return self._take(len(self._held))

    def _take(self, n: int) -> bytes:
        if n == 0:
            return b""
        with memoryview(self._held) as view:
            piece = bytes(view[:n])
        del self._held[:n]
        return piece
