"""images_reference.json: pixels that Pillow decodes from tiny JPEG and PNG files, and resizes."""
import io
import struct
import zlib

import numpy
import PIL
from PIL import Image, features

from reference.files import write_lines

SIZES = [((5, 7), (5, 7)), ((5, 7), (2, 3)), ((5, 7), (11, 15)), ((5, 7), (13, 2)), ((5, 7), (1, 1)),
         ((1, 1), (2, 3)), ((32, 32), (8, 8)), ((32, 32), (37, 37)), ((61, 47), (14, 14)), ((100, 3), (7, 7)),
         ((300, 400), (5, 6))]  # old, new


def png(values, bit_depth, colour_type, interlaced=False, chunks=()):
    """Returns a PNG of integers [height, width, channel], for the kinds that Pillow does not write; rows are not
    filtered."""
    def rows(part):
        bits = (part[..., None] >> numpy.arange(bit_depth - 1, -1, -1)) & 1
        packed = (numpy.packbits(row.astype(numpy.uint8).reshape(-1)).tobytes() for row in bits)
        return b"".join(b"\0" + row for row in packed) if part.size else b""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    passes = [(0, 8, 0, 8), (0, 8, 4, 8), (4, 8, 0, 4), (0, 4, 2, 4), (2, 4, 0, 2), (0, 2, 1, 2), (1, 2, 0, 1)]  # Adam7
    parts = [values[y::dy, x::dx] for y, dy, x, dx in passes] if interlaced else [values]
    head = struct.pack(">IIBBBBB", values.shape[1], values.shape[0], bit_depth, colour_type, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(chunk(*c) for c in chunks)
            + chunk(b"IDAT", zlib.compress(b"".join(rows(part) for part in parts), 9)) + chunk(b"IEND", b""))


def picture(height, width, channels=3):
    """Returns the picture that picture() in the test makes."""
    c, y, x = numpy.meshgrid(range(channels), range(height), range(width), indexing="ij")
    return ((x * x * 3 + y * y * 5 + x * y * 7 + c * 83) % 256).astype(numpy.uint8).transpose(1, 2, 0)


def smooth(height, width):
    y, x, c = numpy.meshgrid(range(height), range(width), range(3), indexing="ij")
    return numpy.clip(20 + x * 11 + y * 6 + c * 35 - x * y * (c + 1) // 2, 0, 255).astype(numpy.uint8)


def saved(image, form, **options):
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def jpeg_files(colour):
    """Returns the names and contents of all files."""
    return [
        ("JPEG 4:2:0", saved(colour, "JPEG", quality=90, subsampling="4:2:0", optimize=True)),
        ("JPEG 4:2:2", saved(colour, "JPEG", quality=75, subsampling="4:2:2", optimize=True)),
        ("JPEG 4:4:4 with usual tables", saved(colour, "JPEG", quality=95, subsampling="4:4:4")),
        ("JPEG, progressive", saved(colour, "JPEG", quality=90, progressive=True)),
        ("JPEG with restart markers", saved(colour, "JPEG", quality=80, restart_marker_blocks=1, optimize=True)),
        ("JPEG in RGB", saved(colour, "JPEG", quality=90, keep_rgb=True, optimize=True)),
        ("JPEG, grey", saved(colour.convert("L"), "JPEG", quality=90, optimize=True)),
        ("JPEG of one pixel", saved(Image.new("RGB", (1, 1), (200, 100, 50)), "JPEG", optimize=True)),
        ("JPEG with an orientation in EXIF", saved(colour, "JPEG", optimize=True, exif=bytes.fromhex(
            "457869660000 4d4d002a00000008 0001 0112 0003 00000001 0006 0000 00000000"))),
    ]


def jpeg_files_of_inks(colour):
    """Returns names and contents of the files with four channels. Pillow writes CMYK with Adobe's marker, whose last
    byte says whether the file is read as CMYK (0) or YCCK (2)."""
    cmyk = Image.fromarray(numpy.dstack([smooth(13, 17), smooth(13, 17)[::-1, :, 1] // 2]), "CMYK")
    marked = saved(cmyk, "JPEG", quality=90, optimize=True)
    begin = marked.index(b"\xff\xee")
    end = begin + 16

    def as_ycck(content):
        assert content[begin:end] == marked[begin:end]
        return content[:end - 1] + b"\2" + content[end:]

    return [
        ("JPEG in CMYK", saved(colour.convert("CMYK"), "JPEG", optimize=True)),
        ("JPEG in CMYK, of all inks", marked),
        ("JPEG in CMYK without Adobe's marker", marked[:begin] + marked[end:]),
        ("JPEG in YCCK", as_ycck(marked)),
        ("JPEG in YCCK 4:2:0, progressive",
         as_ycck(saved(cmyk, "JPEG", quality=90, subsampling="4:2:0", progressive=True))),
    ]


def png_files(colour):
    """Returns names and contents of the files of 8 bits."""
    return [
        ("PNG RGB", saved(Image.fromarray(picture(5, 7)), "PNG")),
        ("PNG RGB, filtered rows", saved(colour, "PNG")),
        ("PNG RGBA", saved(Image.fromarray(picture(5, 7, 4)), "PNG")),
        ("PNG grey", saved(Image.fromarray(picture(5, 7)).convert("L"), "PNG")),
        ("PNG grey with alpha", saved(Image.fromarray(picture(5, 7)).convert("LA"), "PNG")),
        ("PNG of 1 bit", saved(Image.fromarray(picture(5, 11)).convert("1"), "PNG")),
        ("PNG with a palette", saved(Image.fromarray(picture(5, 7)).quantize(9), "PNG")),
        ("PNG with a palette of which one colour is transparent",
         saved(Image.fromarray(picture(5, 7)).quantize(9), "PNG", transparency=3)),
        ("PNG with a profile, a text and a gamma", png(picture(3, 3), 8, 2, chunks=[
            (b"gAMA", bytes(4)), (b"iCCP", b"x\0\0broken"), (b"tEXt", b"Comment\0some text")])),
        ("PNG RGB, one colour transparent", png(picture(3, 3), 8, 2, chunks=[(b"tRNS", bytes([0, 0, 0, 83, 0, 166]))])),
        ("PNG of one pixel", png(picture(1, 1), 8, 2)),
    ]


def png_files_of_other_depths():
    """Returns names and contents of the files of 1, 2, 4 and 16 bits."""
    kinds = []
    for bits in (1, 2, 4):
        low = picture(9, 10, 1) >> (8 - bits)
        kinds.append((f"PNG grey of {bits} bits, interlaced", png(low, bits, 0, interlaced=True)))
        kinds.append((f"PNG grey of {bits} bits, one level transparent",
                      png(low, bits, 0, chunks=[(b"tRNS", b"\0\1")])))
        kinds.append((f"PNG with a palette of {bits} bits",
                      png(low, bits, 3, chunks=[(b"PLTE", picture(1, 2**bits).tobytes())])))
    for interlaced in (False, True):
        suffix = ", interlaced" if interlaced else ""
        wide = picture(9, 10, 4).astype(int) * 256 + 200  # the lower 8 bits would round up
        kinds.append(("PNG RGB of 16 bits" + suffix, png(wide[:, :, :3], 16, 2, interlaced)))
        kinds.append(("PNG RGBA of 16 bits" + suffix, png(wide, 16, 6, interlaced)))
        kinds.append(("PNG grey of 16 bits" + suffix, png(wide[:, :, :1], 16, 0, interlaced)))
        kinds.append(("PNG grey with alpha of 16 bits" + suffix, png(wide[:, :, :2], 16, 4, interlaced)))
    return kinds


def interlaced_png_files():
    """Returns names and contents of the files of 8 bits."""
    return [
        ("PNG RGB, interlaced", png(picture(9, 10), 8, 2, True)),
        ("PNG RGBA of 2 x 1, interlaced", png(picture(1, 2, 4), 8, 6, True)),
    ]


def hexadecimal(pixels):
    """Returns the pixels as [channel, height, width]."""
    return numpy.ascontiguousarray(pixels.transpose(2, 0, 1)).tobytes().hex()


def decoded(name, content):
    image = Image.open(io.BytesIO(content))
    if image.mode == "I;16":  # its convert() clips instead of scaling
        pixels = numpy.repeat((numpy.asarray(image) >> 8).astype(numpy.uint8)[:, :, None], 3, axis=2)
    else:
        pixels = numpy.asarray(image.convert("RGB"))
    return {"name": name, "file": content.hex(), "height": image.height, "width": image.width,
            "pixels": hexadecimal(pixels)}


def resized(old, new):
    image = Image.fromarray(picture(*old)).resize((new[1], new[0]), Image.Resampling.BILINEAR)
    return {"old": old, "new": new, "pixels": hexadecimal(numpy.asarray(image))}


def record_images(path):
    """Records the pixels that Pillow decodes from tiny files of every kind, and resizes. Pixels are [channel, height,
    width] in hexadecimal."""
    colour = Image.fromarray(smooth(13, 17))
    kinds = (jpeg_files(colour) + jpeg_files_of_inks(colour) + png_files(colour) + png_files_of_other_depths()
             + interlaced_png_files())
    write_lines(path, {"source": f"scripts/record-reference: Pillow {PIL.__version__}, "
                                 f"libjpeg-turbo {features.version('libjpeg_turbo')}"},
                {"files": [decoded(name, content) for name, content in kinds],
                 "resized": [resized(old, new) for old, new in SIZES]})
