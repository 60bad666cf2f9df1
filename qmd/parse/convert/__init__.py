"""
Turns files of other formats into Markdown, one module for each family of formats.

Each module has a `qmd.parse.converted.Converter` named ``convert``. Converters are pure: they read
the bytes that they get and nothing else, whatever a file names. A worker loads one when it meets
the first file of its format.
"""
