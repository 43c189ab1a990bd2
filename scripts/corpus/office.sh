#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes the office documents of testdata/files from what is written here. Needs
# LibreOffice (writer, calc, impress). Its versions differ, so the bytes may
# too; the committed files are what the tests use.
set -eu
cd "$(dirname "$0")/../../testdata/files"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

office() { # format, folder, file, options
	format=$1 folder=$2 file=$3
	shift 3
	soffice --headless "-env:UserInstallation=file://$work/profile" "$@" --convert-to "$format" --outdir "$folder" "$file" >/dev/null 2>&1
}

cat > brief.html <<'HTML'
<html><head><meta charset="utf-8"><title>Trip report</title></head><body>
<h1>Trip report 出差报告</h1>
<p>We met <b>three</b> partners, <i>two of them new</i>, and read the <a href="https://example.org/a_b?x=1">agenda</a>. 今天<b>天气很好</b>。</p>
<h2>What we did</h2>
<ul><li>Visited the plant<ul><li>Line A</li><li>Line B</li></ul></li><li>Signed the letter</li></ul>
<ol><li>First step</li><li>Second step</li><li>第三步</li></ol>
<table border="1"><tr><th>City</th><th>Days</th><th>Cost</th></tr><tr><td>Berlin</td><td>2</td><td>1,250.50</td></tr><tr><td colspan="2">上海 and more</td><td>900</td></tr><tr><td rowspan="2">Oslo</td><td>1</td><td>300</td></tr><tr><td>4</td><td>420</td></tr></table>
<p>Use <code>make test</code> first.</p>
<pre>func main() {
	run()
}</pre>
<blockquote>Quality is everything.</blockquote>
<p>Stars * and _under_ and # are text. 5 &lt; 6 &amp; 7 &gt; 2.</p>
</body></html>
HTML

cat > "$work/data.fods" <<'XML'
<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" xmlns:number="urn:oasis:names:tc:opendocument:xmlns:datastyle:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/" office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.spreadsheet">
<office:automatic-styles>
<number:date-style style:name="D"><number:day number:style="long"/><number:text>.</number:text><number:month number:style="long"/><number:text>.</number:text><number:year number:style="long"/></number:date-style>
<number:currency-style style:name="C"><number:currency-symbol>€</number:currency-symbol><number:number number:decimal-places="2" number:min-decimal-places="2" number:min-integer-digits="1" number:grouping="true"/></number:currency-style>
<number:percentage-style style:name="P"><number:number number:decimal-places="1" number:min-decimal-places="1" number:min-integer-digits="1"/><number:text>%</number:text></number:percentage-style>
<number:time-style style:name="T"><number:hours number:style="long"/><number:text>:</number:text><number:minutes number:style="long"/></number:time-style>
<style:style style:name="cd" style:family="table-cell" style:data-style-name="D"/><style:style style:name="cc" style:family="table-cell" style:data-style-name="C"/><style:style style:name="cp" style:family="table-cell" style:data-style-name="P"/><style:style style:name="ct" style:family="table-cell" style:data-style-name="T"/>
</office:automatic-styles>
<office:body><office:spreadsheet>
<table:table table:name="Sales 销售">
<table:table-row><table:table-cell office:value-type="string"><text:p>Product</text:p></table:table-cell><table:table-cell office:value-type="string"><text:p>Date</text:p></table:table-cell><table:table-cell office:value-type="string"><text:p>Price</text:p></table:table-cell><table:table-cell office:value-type="string"><text:p>Share</text:p></table:table-cell><table:table-cell office:value-type="string"><text:p>Time</text:p></table:table-cell></table:table-row>
<table:table-row><table:table-cell office:value-type="string"><office:annotation><text:p>Check this one</text:p></office:annotation><text:p>Tea | 茶</text:p></table:table-cell><table:table-cell table:style-name="cd" office:value-type="date" office:date-value="2026-03-09"><text:p>09.03.2026</text:p></table:table-cell><table:table-cell table:style-name="cc" office:value-type="currency" office:value="1234.5"><text:p>x</text:p></table:table-cell><table:table-cell table:style-name="cp" office:value-type="percentage" office:value="0.125"><text:p>12.5%</text:p></table:table-cell><table:table-cell table:style-name="ct" office:value-type="time" office:time-value="PT07H05M00S"><text:p>07:05</text:p></table:table-cell></table:table-row>
<table:table-row><table:table-cell table:number-columns-spanned="2" office:value-type="string"><text:p>Total</text:p></table:table-cell><table:covered-table-cell/><table:table-cell table:formula="of:=[.C2]*2" table:style-name="cc" office:value-type="currency" office:value="2469"><text:p>x</text:p></table:table-cell><table:table-cell office:value-type="boolean" office:boolean-value="true"><text:p>TRUE</text:p></table:table-cell><table:table-cell office:value-type="float" office:value="0.1"><text:p>0.1</text:p></table:table-cell></table:table-row>
</table:table>
<table:table table:name="Empty"><table:table-row><table:table-cell/></table:table-row></table:table>
<table:table table:name="Links"><table:table-row><table:table-cell office:value-type="string"><text:p><text:a xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="https://example.org/">site</text:a></text:p></table:table-cell></table:table-row></table:table>
</office:spreadsheet></office:body></office:document>
XML

cat > "$work/talk.fodp" <<'XML'
<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:presentation="urn:oasis:names:tc:opendocument:xmlns:presentation:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.presentation">
<office:master-styles><style:master-page style:name="M"/></office:master-styles>
<office:body><office:presentation>
<draw:page draw:name="p1" draw:master-page-name="M">
<draw:frame presentation:class="title" svg:x="1cm" svg:y="1cm" svg:width="20cm" svg:height="3cm"><draw:text-box><text:p>Plan for spring 春季计划</text:p></draw:text-box></draw:frame>
<draw:frame presentation:class="outline" svg:x="1cm" svg:y="5cm" svg:width="20cm" svg:height="8cm"><draw:text-box><text:list><text:list-item><text:p>Hire two people</text:p><text:list><text:list-item><text:p>One in Oslo</text:p></text:list-item></text:list></text:list-item><text:list-item><text:p>Ship the release</text:p></text:list-item></text:list></draw:text-box></draw:frame>
<presentation:notes><draw:frame presentation:class="notes" svg:x="1cm" svg:y="14cm" svg:width="18cm" svg:height="10cm"><draw:text-box><text:p>Say it slowly.</text:p></draw:text-box></draw:frame></presentation:notes>
</draw:page>
<draw:page draw:name="p2" draw:master-page-name="M">
<draw:frame presentation:class="title" svg:x="1cm" svg:y="1cm" svg:width="20cm" svg:height="3cm"><draw:text-box><text:p>Numbers</text:p></draw:text-box></draw:frame>
<draw:frame svg:x="1cm" svg:y="5cm" svg:width="16cm" svg:height="4cm"><table:table><table:table-column/><table:table-column/><table:table-row><table:table-cell><text:p>Month</text:p></table:table-cell><table:table-cell><text:p>Sum</text:p></table:table-cell></table:table-row><table:table-row><table:table-cell><text:p>三月</text:p></table:table-cell><table:table-cell><text:p>42</text:p></table:table-cell></table:table-row></table:table></draw:frame>
</draw:page>
</office:presentation></office:body></office:document>
XML

cp brief.html "$work/brief.html"
office 'docx:MS Word 2007 XML' . "$work/brief.html" '--infilter=HTML (StarWriter)'
office odt . "$work/brief.html" '--infilter=HTML (StarWriter)'
office pdf . brief.docx
office rtf . brief.docx
office xlsx . "$work/data.fods"
office pptx . "$work/talk.fodp"
cp brief.docx "$work/open.docx"
cp brief.docx "$work/locked.docx"
office 'pdf:writer_pdf_Export:{"RestrictPermissions":{"type":"boolean","value":"true"},"PermissionPassword":{"type":"string","value":"owner"}}' . "$work/open.docx"
office 'pdf:writer_pdf_Export:{"EncryptFile":{"type":"boolean","value":"true"},"DocumentOpenPassword":{"type":"string","value":"secret"}}' . "$work/locked.docx"
