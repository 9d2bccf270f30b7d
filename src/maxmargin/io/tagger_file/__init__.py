"""Model files of taggers: everything that tagging needs, and how good the model is.

A container (`maxmargin.io.container`) of kind "tagger". Its meta data have the labels, the encoder
with its template, the certificate and the settings of training. Its arrays are, with d sparse
features, e dense ones, L labels and g pair features (of two neighbouring labels):

=================  ====================================================================
``counts``         [rows] how many labels a sparse feature has weights for
``entry_labels``   [entries] their numbers, ascending
``entry_weights``  [entries] their weights
``rows``           [rows] which features these are; without it, all of them in order
``tail``           [e + L + 2][L] dense features, transitions, start, end
``weights``        [d + e + L + 2][padded L] instead of the five above, if that is smaller
``fingerprints``   [d] what the features of a template are known by
``names``          their names, end to end, compressed by zlib
``name_lengths``   [d] the bytes of each name
``pair_...``       counts, entry_labels, entry_weights ([g * L] rows), fingerprints, names
                   and name_lengths of the pair features, if there are any
``mask_...``       which labels may follow each other, begin and end
``loss_costs``     [L][L] what errors cost, if the loss of training was such a matrix
``embedding_...``  word vectors, the words and their lengths (see `embeddings`)
``support_...``    support tokens in the place of weights, if there is a kernel (see `kernels`)
=================  ====================================================================

Features whose weights are all zero change no prediction. They are left out where features have
names (of a text model, that is more than half of them), so a model that was loaded has fewer
features than the one that was saved, and says the same.
"""


from maxmargin.io.tagger_file.model import KIND, TaggerModel, dense_weights
from maxmargin.io.tagger_file.reading import load_tagger
from maxmargin.io.tagger_file.writing import save_tagger

__all__ = [
    "KIND",
    "TaggerModel",
    "dense_weights",
    "load_tagger",
    "save_tagger",
]
