"""One page about a model: what it was trained on, how far, how good it is, and what it learned.

`content` has the records, `gather` makes them from a model and data, `sections` turns them into
HTML, and `page` puts them together. Texts from outside are escaped by `markup`, the one way in
which HTML is made here.
"""
