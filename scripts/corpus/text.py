#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Text in every script and encoding, in many formats, and text that looks like
# something else. Needs python3 alone. For a text in an old encoding, the file
# {language}_utf8.txt holds the same in UTF-8, to the byte.
import base64, json, os, random

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "testdata", "files"))


def write(name, data):
    with open(name, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


# Each language: two sentences or three that somebody could have written.
languages = {
    "zh": "今天天气很好，我们去公园散步。公园里有很多人，孩子们在草地上放风筝，老人们坐在长椅上聊天。\n晚上我们一起吃饭，然后回家休息。明天还要上班，所以早点睡觉。\n",
    "tw": "今天天氣很好，我們去公園散步。公園裡有很多人，孩子們在草地上放風箏，老人們坐在長椅上聊天。\n晚上我們一起吃飯，然後回家休息。明天還要上班，所以早點睡覺。\n",
    "ja": "今日はとても天気がいいので、公園へ散歩に行きました。子供たちは芝生の上で遊んでいました。\n夜はみんなで食事をして、それから家に帰りました。カタカナも少し入れます。\n",
    "ko": "오늘은 날씨가 아주 좋아서 우리는 공원에 산책하러 갔습니다. 아이들은 잔디밭에서 놀고 있었습니다.\n저녁에는 함께 식사를 하고 집으로 돌아와 쉬었습니다.\n",
    "ru": "Сегодня хорошая погода, и мы пошли гулять в парк. Дети играли на траве, а старики сидели на скамейках.\nВечером мы вместе поужинали и вернулись домой. Завтра на работу.\n",
    "uk": "Сьогодні гарна погода, і ми пішли гуляти в парк. Діти гралися на траві, а літні люди сиділи на лавках.\nУвечері ми разом повечеряли й повернулися додому. Її ґанок був відчинений.\n",
    "el": "Σήμερα ο καιρός είναι πολύ καλός και πήγαμε βόλτα στο πάρκο. Τα παιδιά έπαιζαν στο γρασίδι.\nΤο βράδυ φάγαμε όλοι μαζί και γυρίσαμε στο σπίτι για να ξεκουραστούμε.\n",
    "tr": "Bugün hava çok güzel olduğu için parka yürüyüşe gittik. Çocuklar çimenlerin üzerinde oynuyordu.\nAkşam hep birlikte yemek yedik, sonra dinlenmek için eve döndük. Işıklar sönüktü.\n",
    "he": "היום מזג האוויר יפה מאוד, ולכן הלכנו לטייל בפארק. הילדים שיחקו על הדשא והזקנים ישבו על הספסלים.\nבערב אכלנו יחד וחזרנו הביתה לנוח.\n",
    "ar": "الطقس اليوم جميل جدا ولذلك ذهبنا للتنزه في الحديقة. كان الأطفال يلعبون على العشب وكبار السن يجلسون على المقاعد.\nفي المساء تناولنا الطعام معا ثم عدنا إلى البيت.\n",
    "th": "วันนี้อากาศดีมาก เราจึงไปเดินเล่นในสวนสาธารณะ เด็กๆ กำลังเล่นอยู่บนสนามหญ้า\nตอนเย็นเรากินข้าวด้วยกันแล้วกลับบ้านไปพักผ่อน\n",
    "fr": "Hier, l'été était déjà là : nous avons mangé des crêpes près du château, puis un gâteau à la crème brûlée.\nLa forêt était pleine de chênes, et le garçon, leçon apprise, rentra chez lui, très fatigué.\n",
    "de": "Gestern schien die Sonne, und wir fuhren über die Brücke zum Schloß. Die Kinder spielten draußen, während wir Käse und Brötchen aßen.\nAbends kehrten wir müde zurück; morgen müssen wir früh aufstehen.\n",
    "sv": "Igår sken solen och vi åkte över bron till slottet. Barnen lekte på ängen medan vi åt smörgåsar och drack kaffe.\nPå kvällen gick vi hem igen, trötta men glada. Imorgon är det måndag.\n",
    "en": "\u201cIt\u2019s late,\u201d she said \u2013 and he\u2019d known it all along\u2026 The caf\u00e9\u2019s bill came to \u20ac12.\nThey didn\u2019t talk much on the way home; \u2018tomorrow\u2019, he thought.\n",
    "pl": "Dzisiaj jest bardzo ładna pogoda, więc poszliśmy na spacer do parku. Dzieci bawiły się na trawie, a starsi ludzie siedzieli na ławkach.\nWieczorem zjedliśmy razem kolację i wróciliśmy do domu, żeby odpocząć. Zażółć gęślą jaźń.\n",
    "cs": "Dnes je velmi hezké počasí, a tak jsme šli na procházku do parku. Děti si hrály na trávě a staří lidé seděli na lavičkách.\nVečer jsme společně povečeřeli a vrátili se domů. Příliš žluťoučký kůň úpěl ďábelské ódy.\n",
    "hu": "Ma nagyon szép az idő, ezért elmentünk sétálni a parkba. A gyerekek a füvön játszottak, az öregek a padokon ültek.\nEste együtt vacsoráztunk, azután hazamentünk pihenni. Árvíztűrő tükörfúrógép.\n",
    "hi": "आज मौसम बहुत अच्छा है, इसलिए हम पार्क में टहलने गए। बच्चे घास पर खेल रहे थे और बुज़ुर्ग बेंचों पर बैठे थे।\nशाम को हमने साथ में खाना खाया।\n",
    "ta": "இன்று வானிலை மிகவும் நன்றாக உள்ளது, எனவே நாங்கள் பூங்காவிற்கு நடக்கச் சென்றோம்.\nமாலையில் நாங்கள் ஒன்றாகச் சாப்பிட்டோம்.\n",
    "am": "ዛሬ የአየሩ ሁኔታ በጣም ጥሩ ስለሆነ ወደ መናፈሻ ሄድን። ልጆቹ በሣሩ ላይ ይጫወቱ ነበር።\nማታ አብረን እራት በላን።\n",
    "vi": "Hôm nay thời tiết rất đẹp nên chúng tôi đi dạo trong công viên. Bọn trẻ chơi trên bãi cỏ.\nBuổi tối chúng tôi cùng nhau ăn cơm rồi về nhà nghỉ ngơi.\n",
    "emoji": "Done 🎉 – the family 👨‍👩‍👧‍👦 is home 🏠, flags 🇳🇴🇯🇵, keycap 1️⃣, skin 👍🏽, and a rare 𠮷.\n",
}
encodings = {
    "zh": [("gb18030", "gb18030"), ("utf16le", "utf-16-le"), ("utf16be", "utf-16-be")],
    "tw": [("big5", "big5")],
    "ja": [("sjis", "shift_jis"), ("eucjp", "euc_jp"), ("iso2022jp", "iso2022_jp")],
    "ko": [("euckr", "euc_kr")],
    "ru": [("cp1251", "cp1251"), ("koi8r", "koi8-r"), ("iso5", "iso8859-5"), ("cp866", "cp866"), ("mac", "mac_cyrillic")],
    "uk": [("koi8u", "koi8-u"), ("cp1251", "cp1251")],
    "el": [("cp1253", "cp1253"), ("iso7", "iso8859-7")],
    "tr": [("cp1254", "cp1254")],
    "he": [("cp1255", "cp1255")],
    "ar": [("cp1256", "cp1256")],
    "th": [("tis620", "tis-620")],
    "fr": [("latin1", "latin-1"), ("mac", "mac_roman")],
    "de": [("latin1", "latin-1")],
    "sv": [("latin1", "latin-1")],
    "en": [("cp1252", "cp1252")],
    "pl": [("latin2", "iso8859-2"), ("cp1250", "cp1250")],
    "cs": [("latin2", "iso8859-2"), ("cp1250", "cp1250")],
    "hu": [("latin2", "iso8859-2")],
}
for language, text in languages.items():
    write(language + "_utf8.txt", text)
    for name, codec in encodings.get(language, []):
        write("%s_%s.txt" % (language, name), text.encode(codec))

zh, ru = languages["zh"], languages["ru"]
mixed = "Plain words, then 中文 too.\n" + zh
write("mixed_utf8.txt", mixed)
write("utf16le.txt", b"\xff\xfe" + zh.encode("utf-16-le"))
write("utf16be.txt", b"\xfe\xff" + zh.encode("utf-16-be"))
write("utf16le_nobom.txt", mixed.encode("utf-16-le"))
write("utf16be_nobom.txt", mixed.encode("utf-16-be"))
write("utf32le.txt", b"\xff\xfe\0\0" + zh.encode("utf-32-le"))
write("utf32be.txt", b"\0\0\xfe\xff" + zh.encode("utf-32-be"))
write("bom_crlf.txt", "\ufeffline one\r\nline two 🙂\r\n")
write("bom_only.txt", "\ufeff")
write("one_letter.txt", "a")
write("old_mac_lines.txt", "one\rtwo\rthree\r")
write("no_newline.txt", "no newline at the end")
# A character of three bytes lies across every boundary that readers stop at.
write("cut_here.txt", "x" * 4094 + "世界" * 800 + "\n")

write("notes.md", "# Notes\n\nA heading, a list, and some Chinese.\n\n- first\n- second\n\n你好，世界。\n")
write("data.json", b'{"name": "sample", "big": 12345678901234567890, "twice": 1, "twice": 2, "list": [1, 2, 3]}\n')
write("long.json", json.dumps([{"id": n, "name": "row %d" % n, "tags": ["a", "b"]} for n in range(300)], indent=1))
write("number.json", "123")
write("null.json", "null")
write("rows.ndjson", "".join('{"id": %d}\n' % n for n in range(5)))
write("map.geojson", '{"type": "FeatureCollection", "features": []}\n')
write("book.ipynb", '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}\n')
write("table.csv", 'id,name,price\n1,apple,0.50\n2,pear,0.75\n3,"plum, dried",2.10\n')
write("semicolons.csv", "Name;Preis\nApfel;0,50\nBirne;0,75\n")
write("table.tsv", "id\tname\n1\tapple\n2\tpear\n")
write("cities_cp1252.csv", "city,country\nMünchen,Deutschland\nKöln,Deutschland\nMálaga,España\nBesançon,France\n".encode("cp1252"))
write("config.yaml", "services:\n  - id: local\n    accepts: [image/png]\n# a comment\nlimit: 10\n")
write("config.toml", '[server]\nlisten = "127.0.0.1:7420"\n\n[limits]\nbytes = 1000\n')
write("config.ini", "; settings\n[core]\neditor = vi\n")
write("doc.svg", '<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="20" height="10"><rect width="20" height="10" fill="teal"/></svg>\n')
write("bare.svg", '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 4"><path d="M0 0h4v4z"/></svg>\n')
write("feed.xml", '<?xml version="1.0"?>\n<orders><order id="1">tea</order></orders>\n')
write("latin1.xml", '<?xml version="1.0" encoding="ISO-8859-1"?>\n<ville>Besançon, Orléans, Nîmes</ville>\n'.encode("latin-1"))
write("news.rss", '<?xml version="1.0"?>\n<rss version="2.0"><channel><title>News</title></channel></rss>\n')
write("page.html", '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Page</title></head><body><p>Hello.</p></body></html>\n')
write("page_sjis.html", '<!DOCTYPE html><html><head><meta charset="Shift_JIS"><title>天気</title></head><body><p>今日はとても天気がいいので、公園へ散歩に行きました。</p></body></html>\n'.encode("shift_jis"))
write("page.xhtml", '<?xml version="1.0" encoding="UTF-8"?>\n<html xmlns="http://www.w3.org/1999/xhtml"><head><title>Page</title></head><body/></html>\n')
write("mail.eml", "From: a@example.org\nTo: b@example.org\nSubject: Hello\nDate: Thu, 01 Jan 2026 10:00:00 +0000\nMIME-Version: 1.0\n\nHello.\n")
write("meeting.ics", "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nSUMMARY:Meeting\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n")
write("person.vcf", "BEGIN:VCARD\nVERSION:4.0\nFN:A Person\nEND:VCARD\n")
write("film.srt", "1\n00:00:01,000 --> 00:00:02,500\nHello.\n\n2\n00:00:03,000 --> 00:00:04,000\nGoodbye.\n")
write("film.vtt", "WEBVTT\n\n00:01.000 --> 00:02.500\nHello.\n")
write("change.patch", "--- a/x.txt\n+++ b/x.txt\n@@ -1 +1 @@\n-old\n+new\n")
write("paper.tex", "\\documentclass{article}\n\\begin{document}\nHello, $e^{i\\pi}=-1$.\n\\end{document}\n")
write("query.sql", "select id, name from people where name like 'A%' order by id;\n")
write("code.go.txt", 'package main\n\nimport "fmt"\n\nfunc main() {\n\tfmt.Println("hello")\n}\n')
write("hello.py", "#!/usr/bin/env python3\nprint('hello')\n")
write("hello.sh", "#!/bin/sh\necho hello\n")
write("hello.c", '#include <stdio.h>\n\nint main(void) { puts("hello"); }\n')
write("hello.rs", 'fn main() { println!("hello"); }\n')
write("hello.java", 'class Hello { public static void main(String[] a) { System.out.println("hello"); } }\n')
write("hello.ts", "const hello: string = 'hello';\nexport default hello;\n")
write("style.css", "body { color: teal; }\n")
write("Makefile", "all:\n\techo hello\n")
random.seed(1)
names = "abcdefghijklmnopqrstuvwxyz"
write("bundle.min.js", "!function(){" + "".join('var %s=function(%s,%s){return %s.%s(%d)||"%s"};' % tuple([random.choice(names) for _ in range(5)] + [random.randrange(9999), random.choice(names) * 8]) for _ in range(120)) + "}();\n")
write("bundle.js.map", '{"version":3,"sources":["a.ts"],"names":[],"mappings":"' + "".join(random.choice("ACEGIKMOQSUWY") + random.choice("ABCD,;") for _ in range(800)) + '"}')
write("build.log", "\x1b[32mok\x1b[0m   media\t0.1s\n\x1b[1;31mFAIL\x1b[0m route\n\x1b[2K\rdone \x1b]8;;http://example.org\x07link\x1b]8;;\x07\n")
write("manual.txt", "N\bNA\bAM\bME\bE\n       m\bm_\bak\bke - maintain programs\n\f\nNext page\n")

# Text that somebody could take for something else.
png = open("red.png", "rb").read()
write("png_base64.txt", base64.b64encode(png).decode())
write("png_lines.b64", base64.encodebytes(png))
write("png_data_uri.txt", "data:image/png;base64," + base64.b64encode(png).decode())
write("looks_base64.txt", "abcd")
write("hex.txt", png.hex())
write("png_json.json", json.dumps({"image": "data:image/png;base64," + base64.b64encode(png).decode()}))
write("token.jwt", ".".join(base64.urlsafe_b64encode(s).rstrip(b"=").decode() for s in (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1","name":"nobody"}', bytes(range(32)))))
write("cert.pem", "-----BEGIN CERTIFICATE-----\n" + "\n".join(base64.b64encode(bytes((i * 7 + j) % 256 for j in range(48))).decode() for i in range(8)) + "\n-----END CERTIFICATE-----\n")
write("key.pub", "ssh-ed25519 " + base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + bytes(range(32))).decode() + " somebody@example.org\n")
write("digests.txt", "".join("%064x  file%d\n" % (random.getrandbits(256), n) for n in range(4)))
write("spaces.txt", " \t\n" * 20)
write("dots.txt", "." * 300)

# Prose whose first letters are the mark of a binary format.
tail = " is how this sentence begins, and it goes on for a while.\nSo there is a second line, too.\n"
for name, start in {
    "bm": "BM", "mz": "MZ", "gif": "GIF", "gif89a": "GIF89a", "pk": "PK", "id3": "ID3", "pdf": "%PDF", "pdf14": "%PDF-1.4", "ps": "%!", "rtf": "{\\rtf",
    "riff": "RIFF", "riff_webp": "RIFF1234WEBP", "ogg": "OggS", "flac": "fLaC", "swf": "FWS", "rar": "Rar!", "tiff_ii": "II*", "tiff_mm": "MM", "sqlite": "SQLite format 3",
    "ar": "!<arch>", "torrent": "d8:announce", "woff": "wOFF", "bzip": "BZh9", "seven": "7z", "icns": "icns", "form": "FORM", "au": ".snd", "midi": "MThd",
    "amr": "#!AMR", "psd": "8BPS", "flv": "FLV", "par": "PAR1", "otto": "OTTO", "dicom": "x" * 128 + "DICM", "ftyp": "1234ftypmp42", "mpeg": "ftypisom", "cab": "MSCF", "fits": "SIMPLE  =                    T",
}.items():
    write("prose_%s.txt" % name, start + tail)
write("prose_mz_latin1.txt", ("MZ" + tail + languages["fr"]).encode("latin-1"))
write("prose_bm_gb18030.txt", ("BM" + zh).encode("gb18030"))
write("prose_pk_koi8r.txt", ("PK " + ru).encode("koi8-r"))
write("prose_riff_sjis.txt", ("RIFF" + languages["ja"]).encode("shift_jis"))
write("umlauts_jpeg.txt", "ÿØÿ is how nobody begins.\n".encode())

# Text with one byte too many, and bytes that are nearly text.
write("nul_inside.txt", b"plain text\n" * 20 + b"\0" + b"and more\n")
write("cut_utf8.txt", languages["zh"].encode()[:100])
write("broken_utf8.txt", languages["ru"].encode() * 20 + b"\xff\xfe\xfa")
write("double_bom.txt", "\ufeff\ufefftext\n")
