#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Archives, fonts, programs and databases. Needs p7zip-full, zstd, xz-utils,
# lz4, lzip, cpio, rpm, genisoimage, dpkg-dev, python3-fonttools with brotli,
# DejaVu Sans, gcc, a JDK, wabt and sqlite3.
set -euo pipefail
cd "$(dirname "$0")/../../testdata/files"
files=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export SOURCE_DATE_EPOCH=1767225600

cd "$work"
mkdir -p tree/more
printf 'Hello from inside an archive.\n' >tree/hello.txt
printf 'a,b\n1,2\n' >tree/more/numbers.csv
find tree -exec touch -d @$SOURCE_DATE_EPOCH {} +
tar --sort=name --owner=0 --group=0 --numeric-owner --format=gnu -cf gnu.tar tree
tar --sort=name --owner=0 --group=0 --numeric-owner --format=posix -cf posix.tar tree
gzip -9nc gnu.tar >bundle.tar.gz
gzip -9nc tree/hello.txt >hello.txt.gz
bzip2 -9c gnu.tar >bundle.tar.bz2
xz -9c gnu.tar >bundle.tar.xz
zstd -q -19c gnu.tar >bundle.tar.zst
lz4 -q -9c tree/hello.txt >hello.lz4
lzip -9c tree/hello.txt >hello.lz
7z a -bd -bso0 bundle.7z tree
7z a -bd -bso0 -psecret locked.zip tree
(cd tree && find . | sort | cpio -o -H newc --quiet) >bundle.cpio
genisoimage -quiet -no-pad -R -V CORPUS -o bundle.iso tree
mkdir -p pkg/DEBIAN pkg/usr/share/doc/corpus
printf 'Package: corpus\nVersion: 1\nArchitecture: all\nMaintainer: Nobody <nobody@example.org>\nDescription: nothing\n' >pkg/DEBIAN/control
dpkg-deb --root-owner-group -Zxz --build pkg corpus.deb >/dev/null
cat >corpus.spec <<'SPEC'
Name: corpus
Version: 1
Release: 1
Summary: nothing
License: Apache-2.0
BuildArch: noarch
%description
Nothing.
%files
SPEC
rpmbuild --quiet -bb --define "_topdir $work/rpm" --define "_rpmdir $work" corpus.spec >/dev/null 2>&1 && mv noarch/*.rpm corpus.rpm

printf 'int answer(void) { return 42; }\n' >a.c
printf 'int main(void) { return 0; }\n' >m.c
gcc -Os -c a.c -o object.o
gcc -Os -shared -nostdlib -s a.c -o library.so
gcc -Os -nostdlib -static -s -e main m.c -o program
ar rcD library.a object.o
printf 'class Hello { public static void main(String[] a) { System.out.println("hello"); } }\n' >Hello.java
javac -g:none Hello.java
mkdir -p META-INF && printf 'Manifest-Version: 1.0\nMain-Class: Hello\n\n' >MANIFEST.MF
jar -c -f hello.jar --date=2026-01-01T00:00:00Z -m MANIFEST.MF Hello.class 2>/dev/null || jar cfm hello.jar MANIFEST.MF Hello.class
printf '(module (func (export "answer") (result i32) i32.const 42))' >a.wat
wat2wasm a.wat -o answer.wasm
sqlite3 rows.sqlite 'create table t(a, b); insert into t values (1, "one"), (2, "two"); vacuum;'

sans=/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf
python3 -m fontTools.subset "$sans" --text=Artel --output-file=sans.ttf --no-hinting --desubroutinize
python3 -m fontTools.subset "$sans" --text=Artel --output-file=sans.woff --flavor=woff --no-hinting
python3 -m fontTools.subset "$sans" --text=Artel --output-file=sans.woff2 --flavor=woff2 --no-hinting

for f in gnu.tar posix.tar bundle.tar.gz hello.txt.gz bundle.tar.bz2 bundle.tar.xz bundle.tar.zst hello.lz4 hello.lz bundle.7z \
	locked.zip bundle.cpio bundle.iso corpus.deb corpus.rpm object.o library.so program library.a hello.jar \
	answer.wasm rows.sqlite sans.ttf sans.woff sans.woff2; do
	cp "$f" "$files/"
done
cp Hello.class "$files/"
cd "$files"

python3 - "$work" <<'PYTHON'
import hashlib, io, marshal, os, struct, sys, zipfile, zlib
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.t2CharStringPen import T2CharStringPen
from fontTools.ttLib import TTCollection, TTFont

def write(name, data):
    with open(name, "wb") as f:
        f.write(data)

# OpenType with outlines of PostScript's kind: one square.
pen = T2CharStringPen(500, None)
pen.moveTo((50, 0)); pen.lineTo((450, 0)); pen.lineTo((450, 400)); pen.lineTo((50, 400)); pen.closePath()
square = pen.getCharString()
fb = FontBuilder(1000, isTTF=False)
fb.setupGlyphOrder([".notdef", "A"])
fb.setupCharacterMap({65: "A"})
fb.setupCFF("Square", {"FullName": "Square"}, {".notdef": square, "A": square}, {})
fb.setupHorizontalMetrics({".notdef": (500, 50), "A": (500, 50)})
fb.setupHorizontalHeader(ascent=800, descent=-200)
fb.setupNameTable({"familyName": "Square", "styleName": "Regular"})
fb.setupOS2(); fb.setupPost()
fb.font.recalcTimestamp = False
fb.font["head"].created = fb.font["head"].modified = 0
fb.save("square.otf")
ttc = TTCollection()
ttc.fonts = [TTFont("sans.ttf"), TTFont("sans.ttf")]
ttc.save("both.ttc")
font = open("sans.ttf", "rb").read()
eot = struct.pack("<IIII", 0, len(font), 0x00020001, 0) + bytes(10) + bytes([1, 0]) + struct.pack("<I", 400) + struct.pack("<HH", 0, 0x504C) + bytes(46)
eot = struct.pack("<I", len(eot) + len(font)) + eot[4:]
write("sans.eot", eot + font)

# RAR has no free writer: the marks and the main headers of versions 4 and 5.
write("four.rar", b"Rar!\x1a\x07\x00" + b"\xcf\x90\x73\x00\x00\x0d\x00\x00\x00\x00\x00\x00\x00" + b"\xc4\x3d\x7b\x00\x40\x07\x00")
write("five.rar", b"Rar!\x1a\x07\x01\x00" + b"\x33\x92\xb5\xe5\x0a\x01\x05\x06\x00\x05\x01\x01\x80\x80\x00" + b"\x1d\x77\x56\x51\x03\x05\x04\x00")
write("empty.zip", b"PK\x05\x06" + bytes(18))
buffer = io.BytesIO()
with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as z:
    for name in ("AndroidManifest.xml", "classes.dex", "resources.arsc"):
        z.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), b"\x03\0\x08\0" + name.encode())
write("app.apk", buffer.getvalue())
# A ZIP that talks about office documents, and is none.
buffer = io.BytesIO()
with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as z:
    z.writestr(zipfile.ZipInfo("notes.txt", (2026, 1, 1, 0, 0, 0)), "The entries word/document.xml and [Content_Types].xml make a document.\n")
write("about_office.zip", buffer.getvalue())
write("plain.zlib", zlib.compress(b"Hello from inside a stream. " * 9))
cab_files = struct.pack("<IIHHHH", 6, 0, 0, 0, 0, 32) + b"a.txt\0"
cab = b"MSCF" + struct.pack("<IIIIIBBHHHHH", 0, 0, 0, 44, 0, 3, 1, 1, 1, 0, 0, 0) + struct.pack("<IHH", 44 + len(cab_files), 1, 0) + cab_files + struct.pack("<IHH", 0, 6, 6) + b"hello\n"
write("one.cab", cab[:8] + struct.pack("<I", len(cab)) + cab[12:])

code = compile("print('hello')", "hello.py", "exec")
import importlib.util
write("hello.pyc", importlib.util.MAGIC_NUMBER + struct.pack("<III", 0, 1767225600, 14) + marshal.dumps(code))
# The least that Windows runs, and the least that macOS does.
dos = b"MZ" + bytes(58) + struct.pack("<I", 64)
pe = b"PE\0\0" + struct.pack("<HHIIIHH", 0x8664, 1, 0, 0, 0, 240, 0x22) + struct.pack("<H", 0x20b) + bytes(238)
section = b".text\0\0\0" + struct.pack("<IIIIIIHHI", 1, 0x1000, 512, 512, 0, 0, 0, 0, 0x60000020)
write("program.exe", (dos + pe + section).ljust(512, b"\0") + b"\xc3".ljust(512, b"\0"))
write("program.macho", struct.pack("<IiiIIIII", 0xFEEDFACF, 0x01000007, 3, 2, 0, 0, 0x85, 0).ljust(256, b"\0"))
packet = bytes(12) + b"\x08\0" + bytes(46)
write("trace.pcap", struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + struct.pack("<IIII", 1767225600, 0, len(packet), len(packet)) + packet)
gltf = b'{"asset":{"version":"2.0"}} '
write("scene.glb", b"glTF" + struct.pack("<II", 2, 20 + len(gltf)) + struct.pack("<I", len(gltf)) + b"JSON" + gltf)
write("file.torrent", b"d8:announce20:http://example.org/a4:infod6:lengthi5e4:name5:hello12:piece lengthi16384e6:pieces20:" + hashlib.sha1(b"hello").digest() + b"ee")
write("scan.dcm", bytes(128) + b"DICM" + struct.pack("<HH2sHI", 2, 0, b"UL", 4, 0) + struct.pack("<HH2sH", 2, 0x10, b"UI", 20) + b"1.2.840.10008.1.2.1\0")
rows = b"PAR1" + bytes(64)
write("rows.parquet", rows + struct.pack("<I", 8) + b"PAR1")

# Bytes of no format: noise, zeros, and 32-bit numbers.
noise, out = 1, bytearray()
for _ in range(2048):
    noise = (noise * 6364136223846793005 + 1442695040888963407) % 2**64
    out.append(noise >> 56)
write("noise.bin", bytes(out))
write("zeros.bin", bytes(1024))
write("numbers.bin", b"".join(struct.pack("<i", n * 3) for n in range(500)))
write("floats.bin", b"".join(struct.pack("<f", n / 7) for n in range(500)))
write("empty.bin", b"")
PYTHON
