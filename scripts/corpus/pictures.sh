#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Pictures in every format that Debian's tools can write. Needs ffmpeg,
# imagemagick, libheif-examples, libavif-bin, libjxl-tools, libopenjp2-tools,
# djvulibre-bin, icoutils and python3.
set -euo pipefail
cd "$(dirname "$0")/../../testdata/files"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ff() { ffmpeg -nostdin -hide_banner -loglevel error -y "$@" -bitexact -fflags +bitexact -flags +bitexact; }

ff -f lavfi -i color=red:size=8x8:rate=1 -frames:v 1 -update 1 -pix_fmt rgb24 red.png
ff -f lavfi -i testsrc=size=64x48:rate=1 -frames:v 1 -update 1 -q:v 8 photo.jpg
ff -f lavfi -i testsrc=size=32x24:rate=2 -frames:v 2 anim.gif
ff -f lavfi -i testsrc=size=48x32:rate=1 -frames:v 1 -update 1 -c:v libwebp -quality 50 pic.webp
ff -f lavfi -i testsrc=size=16x12:rate=1 -frames:v 1 -update 1 pic.bmp
ff -f lavfi -i testsrc=size=16x12:rate=1 -frames:v 1 -update 1 pic.tiff

ff -f lavfi -i testsrc=size=40x30:rate=1 -frames:v 1 -update 1 -pix_fmt rgb24 "$work/p.png"
p=$work/p.png
im() { convert "$p" -strip "$@"; }

im -colorspace Gray -depth 16 gray16.png
im -colors 16 PNG8:palette.png
im -alpha set -channel A -evaluate set 50% PNG32:alpha.png
im -interlace PNG interlaced.png
ff -f lavfi -i testsrc=size=32x24:rate=2 -frames:v 2 -plays 0 -f apng anim.png
im -interlace JPEG -quality 60 progressive.jpg
im -colorspace CMYK -quality 60 cmyk.jpg
im -colorspace Gray -quality 60 gray.jpg
im -quality 70 "$work/plain.jpg"
im gif:still.gif
im BMP2:os2.bmp
im -alpha set BMP:alpha.bmp
im -define webp:lossless=true lossless.webp
im -alpha set -channel A -evaluate set 50% -define webp:lossless=false -quality 50 alpha.webp
ff -f lavfi -i testsrc=size=32x24:rate=2 -frames:v 2 -c:v libwebp_anim -quality 40 -loop 0 anim.webp
im -endian MSB -compress LZW big_endian.tiff
convert "$p" "$p" -strip -compress Zip pages.tiff
im -define icon:auto-resize=32,16 icon.ico
im -resize 24x24! PNG32:"$work/pointer.png" && icotool -c --cursor -X 3 -Y 4 -o pointer.cur "$work/pointer.png"
im PSD:layers.psd
im TGA:scan.tga
im PCX:brush.pcx
im PPM:raw.ppm
im -compress none PGM:plain.pgm
im XPM:pixmap.xpm
im HDR:light.hdr
im -depth 8 FITS:sky.fits
opj_compress -n 3 -i "$p" -o wave.jp2 >/dev/null
opj_compress -n 3 -i "$p" -o wave.j2k >/dev/null
cjxl -q 60 "$p" photo.jxl >/dev/null 2>&1
cjxl --container=1 -q 60 "$p" boxed.jxl >/dev/null 2>&1
heif-enc -q 40 -o photo.heic "$p" >/dev/null
heif-enc -A -q 40 -o libheif.avif "$p" >/dev/null
avifenc --min 40 --max 40 -s 8 "$p" photo.avif >/dev/null
ff -f lavfi -i testsrc=size=32x24:rate=2 -frames:v 2 -pix_fmt yuv420p "$work/a.y4m"
avifenc --min 40 --max 40 -s 8 "$work/a.y4m" anim.avif >/dev/null
avifenc --min 40 --max 40 -s 8 --irot 1 "$p" turned.avif >/dev/null
im -colorspace Gray "$work/p.pgm" && im -monochrome "$work/p.pbm" && cjb2 "$work/p.pbm" scan.djvu

python3 - "$work/plain.jpg" <<'PYTHON'
import struct, sys

# A camera that was held upright: EXIF says to turn the picture by 90 degrees.
jpeg = open(sys.argv[1], "rb").read()
tiff = b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", 1) + struct.pack("<HHIHH", 0x112, 3, 1, 6, 0) + struct.pack("<I", 0)
exif = b"Exif\0\0" + tiff
open("upright.jpg", "wb").write(jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + jpeg[2:])

# The marker that other programs write first, and one that Adobe's do.
open("raw.jpg", "wb").write(jpeg[:2] + jpeg[20:])

# An icon family of macOS with one entry, a PNG.
png = open("red.png", "rb").read()
entry = b"icp4" + struct.pack(">I", 8 + len(png)) + png
open("family.icns", "wb").write(b"icns" + struct.pack(">I", 8 + len(entry)) + entry)
icon = struct.pack("<HHH", 0, 1, 1) + struct.pack("<BBBBHHII", 8, 8, 0, 0, 1, 32, len(png), 22) + png
open("png_inside.ico", "wb").write(icon)
PYTHON
