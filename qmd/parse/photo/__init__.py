"""
Reads the metadata of JPEG, PNG and HEIC photos without decoding a pixel.

The readers walk through the headers of the containers and ask a `PhotoSource` for the few bytes
that matter, so a photo of any size costs the same, and a decompression bomb costs nothing.
"""
