"""The built-in templates, as texts that can be printed and edited.

A name stands for its newest version; ``ner@1`` is the first one, and stays what it is. The second
versions were chosen on development data, block by block (``benchmarks/template_choice.py``);
``benchmarks/templates.py`` prints what they gain and what they cost.
"""

from __future__ import annotations

__all__ = ["BUILTIN_TEMPLATES", "name_of_builtin"]

# The separator | is rare in text, so that a|b can hardly be read in two ways; / is not ("1/2").

_TRANSITIONS = """\
# Label transitions
B
"""

_WORDS = """\
# Words around here, and pairs of words
U:w-2=%x[-2,0]
U:w-1=%x[-1,0]
U:w0=%x[0,0]
U:w+1=%x[1,0]
U:w+2=%x[2,0]
U:w-1,0=%x[-1,0]|%x[0,0]
U:w0,+1=%x[0,0]|%x[1,0]

# What a new word shares with known ones: lower case, beginning, end, shape
U:low=%X[0,0]
U:pre1=%p[0,0,1]
U:pre2=%p[0,0,2]
U:pre3=%p[0,0,3]
U:suf1=%s[0,0,1]
U:suf2=%s[0,0,2]
U:suf3=%s[0,0,3]
U:shape=%c[0,0]

"""

_POS = r"""# Words around here, and pairs of words
U:w-2=%x[-2,0]
U:w-1=%x[-1,0]
U:w0=%x[0,0]
U:w+1=%x[1,0]
U:w+2=%x[2,0]
U:w-1,0=%x[-1,0]|%x[0,0]
U:w0,+1=%x[0,0]|%x[1,0]

# Beginnings and ends
U:pre1=%p[0,0,1]
U:pre2=%p[0,0,2]
U:pre3=%p[0,0,3]
U:pre4=%p[0,0,4]
U:suf1=%s[0,0,1]
U:suf2=%s[0,0,2]
U:suf3=%s[0,0,3]
U:suf4=%s[0,0,4]

# Spelling: lower-cased; a capital first, a digit, a hyphen
U:low=%X[0,0]
U:cap=%t[0,0,"^\u"]
U:digit=%t[0,0,"\d"]
U:hyphen=%t[0,0,"-"]

"""

_CHUNKING = """\
# Words around here, and pairs of words
U:w-2=%x[-2,0]
U:w-1=%x[-1,0]
U:w0=%x[0,0]
U:w+1=%x[1,0]
U:w+2=%x[2,0]
U:w-1,0=%x[-1,0]|%x[0,0]
U:w0,+1=%x[0,0]|%x[1,0]

# Parts of speech, alone, in pairs and in threes
U:p-2=%x[-2,1]
U:p-1=%x[-1,1]
U:p0=%x[0,1]
U:p+1=%x[1,1]
U:p+2=%x[2,1]
U:p-2,-1=%x[-2,1]|%x[-1,1]
U:p-1,0=%x[-1,1]|%x[0,1]
U:p0,+1=%x[0,1]|%x[1,1]
U:p+1,+2=%x[1,1]|%x[2,1]
U:p-2,0=%x[-2,1]|%x[-1,1]|%x[0,1]
U:p-1,+1=%x[-1,1]|%x[0,1]|%x[1,1]
U:p0,+2=%x[0,1]|%x[1,1]|%x[2,1]

"""

_NER = r"""# Words around here, and pairs of words
U:w-2=%x[-2,0]
U:w-1=%x[-1,0]
U:w0=%x[0,0]
U:w+1=%x[1,0]
U:w+2=%x[2,0]
U:w-1,0=%x[-1,0]|%x[0,0]
U:w0,+1=%x[0,0]|%x[1,0]
U:low=%X[0,0]

# Beginnings and ends
U:pre1=%p[0,0,1]
U:pre2=%p[0,0,2]
U:pre3=%p[0,0,3]
U:pre4=%p[0,0,4]
U:suf1=%s[0,0,1]
U:suf2=%s[0,0,2]
U:suf3=%s[0,0,3]
U:suf4=%s[0,0,4]

# Shapes: IL-2 is XX-d, and X-d in short
U:h-1=%h[-1,0]
U:h0=%h[0,0]
U:h+1=%h[1,0]
U:c-1=%c[-1,0]
U:c0=%c[0,0]
U:c+1=%c[1,0]
U:c-1,0=%c[-1,0]|%c[0,0]
U:c0,+1=%c[0,0]|%c[1,0]
U:c-1,+1=%c[-1,0]|%c[0,0]|%c[1,0]

# A shape beside a word: a capital behind "Mr." or "en", a number before "cells"
U:w-1,c0=%X[-1,0]|%c[0,0]
U:c0,w+1=%c[0,0]|%X[1,0]

# Spelling: a digit, a hyphen, capitals only; a capital first, which says less about a first word
U:digit=%t[0,0,"\d"]
U:hyphen=%t[0,0,"-"]
U:caps=%t[0,0,"^\u\u*$"]
U:cap=%t[0,0,"^\u"]
U:first=%t[-1,0,"^_B-1$"]
U:first,cap=%t[-1,0,"^_B-1$"]|%t[0,0,"^\u"]

"""

_POS_2 = """\
# The words on both sides, and shapes: IL-2 is X-d
U:w-1,+1=%X[-1,0]|%X[1,0]
U:c-1=%c[-1,0]
U:c0=%c[0,0]
U:c+1=%c[1,0]

"""

_CHUNKING_2 = """\
# Parts of speech beside a word
U:p-2,w0=%x[-2,1]|%x[-1,1]|%x[0,0]
U:w0,p+2=%x[0,0]|%x[1,1]|%x[2,1]

# Spelling: lower case, beginnings and ends; ends of the words beside it
U:low=%X[0,0]
U:pre1=%P[0,0,1]
U:pre2=%P[0,0,2]
U:pre3=%P[0,0,3]
U:suf1=%S[0,0,1]
U:suf2=%S[0,0,2]
U:suf3=%S[0,0,3]
U:suf-1=%S[-1,0,3]
U:suf+1=%S[1,0,3]

"""

_NER_2 = """\
# Wider: pairs of words before and behind, shapes of three words, longer beginnings and ends
U:w-2,-1=%X[-2,0]|%X[-1,0]
U:w+1,+2=%X[1,0]|%X[2,0]
U:c-2,0=%c[-2,0]|%c[-1,0]|%c[0,0]
U:c0,+2=%c[0,0]|%c[1,0]|%c[2,0]
U:w-2,c0=%X[-2,0]|%c[-1,0]|%c[0,0]
U:c0,w+2=%c[0,0]|%c[1,0]|%X[2,0]
U:pre5=%P[0,0,5]
U:suf5=%S[0,0,5]

"""

_WORDS_HEAD = "# words: for any tagging of words; needs one column, the words.\n\n"
_POS_HEAD = "# pos: for parts of speech; needs one column, the words.\n\n"
_NER_HEAD = "# ner: for names of people, places, genes, ...; needs one column, the words.\n\n"
_CHUNKING_HEAD = """\
# chunking: for phrases; needs two columns, the words and their parts of speech.
"""
_FAMILIAR = """\
# These are the features of the CoNLL-2000 examples that come with CRF++ and CRFsuite.

"""

#: Name -> texts of all versions, the newest one last.
_VERSIONS = {
    "words": (_WORDS_HEAD + _WORDS + _TRANSITIONS,),
    "pos": (
        _POS_HEAD + _POS + _TRANSITIONS,
        _POS_HEAD + _POS + _POS_2 + _TRANSITIONS,
    ),
    "chunking": (
        _CHUNKING_HEAD + _FAMILIAR + _CHUNKING + _TRANSITIONS,
        _CHUNKING_HEAD + "\n" + _CHUNKING + _CHUNKING_2 + _TRANSITIONS,
    ),
    "ner": (
        _NER_HEAD + _NER + _TRANSITIONS,
        _NER_HEAD + _NER + _NER_2 + _TRANSITIONS,
    ),
}

#: Name -> text: the newest versions, and all of them by their numbers, such as ner@1.
BUILTIN_TEMPLATES = {name: texts[-1] for name, texts in _VERSIONS.items()} | {
    f"{name}@{k}": text
    for name, texts in _VERSIONS.items()
    for k, text in enumerate(texts, 1)
}


def name_of_builtin(text: str) -> str | None:
    """Return which version of which built-in template a text is.

    Parameters
    ----------
    text : str
        The text of a template.

    Returns
    -------
    str or None
        Its name with the number, such as ``ner@1``; None if it is none of them.
    """
    named = (name for name, known in BUILTIN_TEMPLATES.items() if "@" in name and known == text)
    return next(named, None)
