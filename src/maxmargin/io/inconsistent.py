"""Errors about a model file whose content does not make sense name the file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from maxmargin.errors import ModelFormatError, NotCompatibleError

__all__ = ["naming_file"]


@contextlib.contextmanager
def naming_file(path: str, passed: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn all that goes wrong with what a file holds into an error that names the file.

    Parameters
    ----------
    path : str
        The file.
    passed : tuple of exception types
        What is not wrong with the file, but with how it is used: a ValueError (or a
        NotCompatibleError, if it is one) with its name.
    """
    try:
        yield
    except ModelFormatError:
        raise
    except passed as error:
        known = isinstance(error, NotCompatibleError)
        raise (NotCompatibleError if known else ValueError)(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ModelFormatError(f"{path}: the model is inconsistent: {what}") from error
