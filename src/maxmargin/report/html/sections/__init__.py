"""The sections of the page, one file each: records in, HTML out."""
