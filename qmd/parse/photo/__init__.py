"""
Reads the metadata of JPEG, PNG and HEIC photos without decoding a pixel.

The readers walk through the headers of the containers and ask a `PhotoSource` for the few bytes
that matter, so a photo of any size costs the same, and a decompression bomb costs nothing.

Pillow, which makes the thumbnails, was tried in place of the readers of JPEG and PNG. It would save
some sixty lines, because the check of a photo after it was written walks
through the same segments and chunks. And Pillow

- reads what stands after the pixels of a PNG, where many programs write texts, only by decoding
  the pixels: 47 ms of CPU for three megapixels, instead of .4;
- gives nothing at all of a PNG if one of its texts has a wrong checksum or is longer than a MiB,
  nor of a JPEG whose headers are damaged after the metadata;
- takes twice the time for a JPEG, and prints warnings about damaged EXIF.
"""
