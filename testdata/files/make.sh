#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes the sample files beside it. Needs ffmpeg with libx264, libmp3lame and
# libwebp, and python3. Encoders differ between versions, so the bytes may too;
# the committed files are what the tests use.
set -eu
cd "$(dirname "$0")"

ff() { ffmpeg -nostdin -hide_banner -loglevel error -y "$@" -bitexact -fflags +bitexact -flags +bitexact; }

ff -f lavfi -i color=red:size=8x8:rate=1 -frames:v 1 -update 1 -pix_fmt rgb24 red.png
ff -f lavfi -i testsrc=size=64x48:rate=1 -frames:v 1 -update 1 -q:v 8 photo.jpg
ff -f lavfi -i testsrc=size=32x24:rate=2 -frames:v 2 anim.gif
ff -f lavfi -i testsrc=size=48x32:rate=1 -frames:v 1 -update 1 -c:v libwebp -quality 50 pic.webp
ff -f lavfi -i testsrc=size=16x12:rate=1 -frames:v 1 -update 1 pic.bmp
ff -f lavfi -i testsrc=size=16x12:rate=1 -frames:v 1 -update 1 pic.tiff
ff -f lavfi -i sine=frequency=440:sample_rate=8000:duration=0.5 tone.wav
ff -f lavfi -i sine=frequency=440:sample_rate=16000:duration=1 -c:a libmp3lame -b:a 16k tone.mp3
ff -f lavfi -i sine=frequency=440:sample_rate=8000:duration=0.5 tone.flac
ff -f lavfi -i testsrc=size=32x24:rate=5:duration=1 -c:v libx264 -pix_fmt yuv420p clip.mp4

python3 - <<'PYTHON'
import io, json, os, zipfile, zlib

def write(name, data):
    with open(name, "wb") as f:
        f.write(data)

def zipped(name, entries):
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as z:
        for path, text in entries:
            z.writestr(zipfile.ZipInfo(path, (2026, 1, 1, 0, 0, 0)), text)

def pdf(objects, first="%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"):
    out = bytearray(first.encode("latin-1"))
    offsets = []
    for n, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % n + body + b"\nendobj\n"
    xref = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for o in offsets:
        out += b"%010d 00000 n \n" % o
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, xref)
    return bytes(out)

def stream(text):
    return b"<< /Length %d >>\nstream\n" % len(text) + text + b"\nendstream"

page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 7 0 R >> >> /Contents %d 0 R >>"
write("report.pdf", pdf([
    b"<< /Type /Catalog /Pages 2 0 R >>",
    b"<< /Type /Pages /Kids [3 0 R 4 0 R] /Count 2 >>",
    page % 5, page % 6,
    stream(b"BT /F1 24 Tf 72 760 Td (Quarterly report) Tj 0 -40 Td /F1 12 Tf (Revenue grew by 7 percent.) Tj ET"),
    stream(b"BT /F1 12 Tf 72 760 Td (Page two: the outlook is fair.) Tj ET"),
    b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
]))

def pdf_with_object_stream():
    members = [(1, b"<</Type/Catalog/Pages 2 0 R>>"), (2, b"<</Count 3/Kids[3 0 R 4 0 R 5 0 R]/Type/Pages>>")]
    members += [(n, b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]>>") for n in (3, 4, 5)]
    index, body = b"", b""
    for n, text in members:
        index += b"%d %d " % (n, len(body))
        body += text + b" "
    packed = zlib.compress(index + body)
    out = b"%PDF-1.5\n%\xe2\xe3\xcf\xd3\n"
    six = len(out)
    out += b"6 0 obj\n<</Type/ObjStm/N %d/First %d/Filter/FlateDecode/Length %d>>\nstream\n" % (len(members), len(index), len(packed))
    out += packed + b"\nendstream\nendobj\n"
    seven = len(out)
    rows = bytes([0, 0, 0, 255]) + b"".join(bytes([2, 0, 6, i]) for i in range(5))
    rows += bytes([1]) + six.to_bytes(2, "big") + b"\0" + bytes([1]) + seven.to_bytes(2, "big") + b"\0"
    rows = zlib.compress(rows)
    out += b"7 0 obj\n<</Type/XRef/Size 8/W[1 2 1]/Root 1 0 R/Filter/FlateDecode/Length %d>>\nstream\n" % len(rows)
    return out + rows + b"\nendstream\nendobj\nstartxref\n%d\n%%%%EOF\n" % seven

write("packed.pdf", pdf_with_object_stream())

zipped("archive.zip", [("hello.txt", "Hello from inside an archive.\n"), ("more/numbers.csv", "a,b\n1,2\n")])
zipped("letter.docx", [
    ("[Content_Types].xml", '<?xml version="1.0" encoding="UTF-8" standalone="yes"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'),
    ("_rels/.rels", '<?xml version="1.0" encoding="UTF-8" standalone="yes"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>'),
    ("word/document.xml", '<?xml version="1.0" encoding="UTF-8" standalone="yes"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>Dear reader,</w:t></w:r></w:p><w:p><w:r><w:t>this letter is short.</w:t></w:r></w:p></w:body></w:document>'),
])
write("memo.rtf", rb"{\rtf1\ansi\deff0{\fonttbl{\f0 Times;}}\f0\fs24 A short memo.\par}" + b"\n")

zh = "今天天气很好，我们去公园散步。公园里有很多人，孩子们在草地上放风筝，老人们坐在长椅上聊天。\n晚上我们一起吃饭，然后回家休息。明天还要上班，所以早点睡觉。\n"
ja = "今日はとても天気がいいので、公園へ散歩に行きました。子供たちは芝生の上で遊んでいました。\n夜はみんなで食事をして、それから家に帰りました。カタカナも少し入れます。\n"
ru = "Сегодня хорошая погода, и мы пошли гулять в парк. Дети играли на траве, а старики сидели на скамейках.\nВечером мы вместе поужинали и вернулись домой. Завтра на работу.\n"
fr = "Hier, l'été était déjà là : nous avons mangé des crêpes près du château, puis un gâteau à la crème brûlée.\nLa forêt était pleine de chênes, et le garçon leçon apprise rentra chez lui, très fatigué.\n"
write("notes.md", "# Notes\n\nA heading, a list, and some Chinese.\n\n- first\n- second\n\n你好，世界。\n".encode())
write("zh_utf8.txt", zh.encode())
write("zh_gb18030.txt", zh.encode("gb18030"))
write("ja_sjis.txt", ja.encode("shift_jis"))
write("ru_cp1251.txt", ru.encode("cp1251"))
write("latin1.txt", fr.encode("latin-1"))
write("utf16le.txt", b"\xff\xfe" + zh.encode("utf-16-le"))
write("utf16be_nobom.txt", ("Plain words, then 中文 too.\n" + zh).encode("utf-16-be"))
write("bom_crlf.txt", "\ufeffline one\r\nline two 🙂\r\n".encode())
write("data.json", b'{"name": "sample", "big": 12345678901234567890, "twice": 1, "twice": 2, "list": [1, 2, 3]}\n')
write("table.csv", b"id,name,price\n1,apple,0.50\n2,pear,0.75\n3,\"plum, dried\",2.10\n")
write("doc.svg", b'<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="20" height="10"><rect width="20" height="10" fill="teal"/></svg>\n')
write("code.go.txt", b'package main\n\nimport "fmt"\n\nfunc main() {\n\tfmt.Println("hello")\n}\n')
PYTHON
