"""The built-in templates, as texts that can be printed and edited."""

from __future__ import annotations

__all__ = ["BUILTIN_TEMPLATES"]

# The separator | is rare in text, so that a|b can hardly be read in two ways; / is not ("1/2").

_WORDS = """\
# words: for any tagging of words; needs one column, the words.

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

# Label transitions
B
"""

_POS = r"""# pos: for parts of speech; needs one column, the words.

# Words around here, and pairs of words
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

# Label transitions
B
"""

_CHUNKING = """\
# chunking: for phrases; needs two columns, the words and their parts of speech.
# These are the features of the CoNLL-2000 examples that come with CRF++ and CRFsuite.

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

# Label transitions
B
"""

_NER = r"""# ner: for names of people, places, genes, ...; needs one column, the words.

# Words around here, and pairs of words
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

# Label transitions
B
"""

#: Name -> text.
BUILTIN_TEMPLATES = {"words": _WORDS, "pos": _POS, "chunking": _CHUNKING, "ner": _NER}
