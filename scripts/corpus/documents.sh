#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Documents beside those of office.sh, of which most are made: the old and the
# open office formats, e-books and what printers take. Needs LibreOffice,
# ghostscript and python3.
set -euo pipefail
cd "$(dirname "$0")/../../testdata/files"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

office() { # format, file
	soffice --headless "-env:UserInstallation=file://$work/profile" --convert-to "$1" --outdir "$work" "$2" >/dev/null 2>&1
}

printf '<html><body><h1>Brief</h1><p>A short letter, 短信.</p></body></html>' >"$work/short.html"
soffice --headless "-env:UserInstallation=file://$work/profile" '--infilter=HTML (StarWriter)' --convert-to odt --outdir "$work" "$work/short.html" >/dev/null 2>&1
office 'doc:MS Word 97' "$work/short.odt"
office 'dot:MS Word 97 Vorlage' "$work/short.odt"
office ott "$work/short.odt"
office epub "$work/short.odt"
office fodt "$work/short.odt"
office 'xls:MS Excel 97' data.xlsx
office ods data.xlsx
office xlsm:'Calc MS Excel 2007 VBA XML' data.xlsx
office xlsb:'Calc MS Excel 2007 Binary' data.xlsx || true
office 'ppt:MS PowerPoint 97' talk.pptx
office odp talk.pptx
office odg talk.pptx
for f in doc ott epub fodt; do cp "$work/short.$f" "short.$f"; done
for f in xls ods xlsm; do cp "$work/data.$f" "data.$f"; done
for f in ppt odp; do cp "$work/talk.$f" "talk.$f"; done

cat >page.ps <<'PS'
%!PS-Adobe-3.0
%%Pages: 1
%%EndComments
%%Page: 1 1
/Helvetica findfont 12 scalefont setfont
72 720 moveto (A page, made by hand.) show
showpage
%%EOF
PS
cat >page.eps <<'PS'
%!PS-Adobe-3.0 EPSF-3.0
%%BoundingBox: 0 0 100 50
newpath 10 10 moveto 90 40 lineto stroke
showpage
%%EOF
PS
gs -q -dNOPAUSE -dBATCH -dSAFER -sDEVICE=pdfwrite -dCompressPages=true -dCompatibilityLevel=1.7 -sOutputFile=gs.pdf page.ps
gs -q -dNOPAUSE -dBATCH -dSAFER -sDEVICE=xpswrite -r72 -sOutputFile=page.xps page.ps || rm -f page.xps

python3 - <<'PYTHON'
import zipfile, zlib

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

# A PDF after a line of mail, as some programs save it.
pdf = open("report.pdf", "rb").read()
open("late.pdf", "wb").write(b"\r\n\0" + pdf)

# An office document as other programs order its parts: the types come last.
with zipfile.ZipFile("letter.docx") as old, zipfile.ZipFile("reordered.docx", "w", zipfile.ZIP_DEFLATED) as new:
    for name in reversed(old.namelist()):
        new.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), old.read(name))

# The EPUB that a hand makes: the type first and stored, then the rest.
with zipfile.ZipFile("small.epub", "w", zipfile.ZIP_DEFLATED) as z:
    z.writestr(zipfile.ZipInfo("mimetype", (2026, 1, 1, 0, 0, 0)), "application/epub+zip", zipfile.ZIP_STORED)
    z.writestr(zipfile.ZipInfo("META-INF/container.xml", (2026, 1, 1, 0, 0, 0)), "<container/>")
PYTHON
