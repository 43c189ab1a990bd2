// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bufio"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// The parts of a DOCX that do not depend on the text, by ECMA-376. The order
// of elements is that of its schemas: Word refuses any other.

const (
	xmlHeader      = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	word           = `xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"`
	wordNamespaces = ` ` + word +
		` xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"` +
		` xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"` +
		` xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"` +
		` xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture"` +
		` xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"` +
		` xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"`
	relationTypes  = `http://schemas.openxmlformats.org/officeDocument/2006/relationships`
	relationFooter = `rFooter`
	monospaced     = `<w:rFonts w:ascii="Consolas" w:hAnsi="Consolas" w:cs="Consolas"/>`
)

const contentTypes = xmlHeader + `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">` +
	`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
	`<Default Extension="xml" ContentType="application/xml"/>` +
	`<Default Extension="png" ContentType="image/png"/>` +
	`<Default Extension="jpeg" ContentType="image/jpeg"/>` +
	`<Default Extension="gif" ContentType="image/gif"/>` +
	`<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>` +
	`<Override PartName="/word/styles.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml"/>` +
	`<Override PartName="/word/settings.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.settings+xml"/>` +
	`<Override PartName="/word/fontTable.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.fontTable+xml"/>` +
	`<Override PartName="/word/numbering.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.numbering+xml"/>` +
	`<Override PartName="/word/footer1.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.footer+xml"/>` +
	`<Override PartName="/docProps/core.xml" ContentType="application/vnd.openxmlformats-package.core-properties+xml"/>` +
	`<Override PartName="/docProps/app.xml" ContentType="application/vnd.openxmlformats-officedocument.extended-properties+xml"/>` +
	`</Types>`

const openRelations = xmlHeader + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`

const rootRelations = openRelations +
	`<Relationship Id="rId1" Type="` + relationTypes + `/officeDocument" Target="word/document.xml"/>` +
	`<Relationship Id="rId2" Type="http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties" Target="docProps/core.xml"/>` +
	`<Relationship Id="rId3" Type="` + relationTypes + `/extended-properties" Target="docProps/app.xml"/>` +
	`</Relationships>`

const documentRelations = openRelations +
	`<Relationship Id="rStyles" Type="` + relationTypes + `/styles" Target="styles.xml"/>` +
	`<Relationship Id="rSettings" Type="` + relationTypes + `/settings" Target="settings.xml"/>` +
	`<Relationship Id="rFonts" Type="` + relationTypes + `/fontTable" Target="fontTable.xml"/>` +
	`<Relationship Id="rNumbering" Type="` + relationTypes + `/numbering" Target="numbering.xml"/>` +
	`<Relationship Id="` + relationFooter + `" Type="` + relationTypes + `/footer" Target="footer1.xml"/>`

const appProperties = xmlHeader + `<Properties xmlns="http://schemas.openxmlformats.org/officeDocument/2006/extended-properties"><Application>Artel</Application></Properties>`

// footer shows the page number and the number of pages.
const footer = xmlHeader + `<w:ftr ` + word + `><w:p><w:pPr><w:pStyle w:val="Footer"/></w:pPr>` +
	`<w:fldSimple w:instr=" PAGE "><w:r><w:t>1</w:t></w:r></w:fldSimple>` +
	`<w:r><w:t xml:space="preserve"> / </w:t></w:r>` +
	`<w:fldSimple w:instr=" NUMPAGES "><w:r><w:t>1</w:t></w:r></w:fldSimple></w:p></w:ftr>`

func coreProperties(d Document, language string) string {
	var b strings.Builder
	b.WriteString(xmlHeader + `<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"` +
		` xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">`)
	fmt.Fprintf(&b, `<dc:title>%s</dc:title>`, attr(d.Title))
	if d.Author != "" {
		fmt.Fprintf(&b, `<dc:creator>%s</dc:creator><cp:lastModifiedBy>%[1]s</cp:lastModifiedBy>`, attr(d.Author))
	}
	if language != "" {
		fmt.Fprintf(&b, `<dc:language>%s</dc:language>`, attr(language))
	}
	if !d.Time.IsZero() {
		at := d.Time.UTC().Format(time.RFC3339)
		fmt.Fprintf(&b, `<dcterms:created xsi:type="dcterms:W3CDTF">%s</dcterms:created><dcterms:modified xsi:type="dcterms:W3CDTF">%[1]s</dcterms:modified>`, at)
	}
	b.WriteString(`</cp:coreProperties>`)
	return b.String()
}

// guessLanguage returns the language of a text whose script needs its own fonts:
// kana is Japanese, hangul Korean, other Han Chinese. It is "" for all others.
func guessLanguage(s string) string {
	const enough = 20_000 // bytes to look at
	if len(s) > enough {
		s = s[:enough]
	}
	var han, kana, hangul int
	for _, r := range s {
		switch {
		case r < 0x1100:
		case unicode.Is(unicode.Han, r):
			han++
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			kana++
		case unicode.Is(unicode.Hangul, r):
			hangul++
		}
	}
	switch {
	case hangul > han+kana:
		return "ko"
	case kana > 0 && kana*10 > han:
		return "ja"
	case han > 0:
		return "zh"
	}
	return ""
}

// An eastAsia names the fonts for Chinese, Japanese or Korean: Word's, and the
// substitute of programs that do not have it.
type eastAsia struct{ tag, font, substitute string }

func eastAsiaOf(language string) eastAsia {
	tag := strings.ToLower(language)
	switch {
	case strings.HasPrefix(tag, "ja"):
		return eastAsia{"ja-JP", "Yu Gothic", "Noto Sans CJK JP"}
	case strings.HasPrefix(tag, "ko"):
		return eastAsia{"ko-KR", "Malgun Gothic", "Noto Sans CJK KR"}
	case strings.HasPrefix(tag, "zh-tw"), strings.HasPrefix(tag, "zh-hk"), strings.HasPrefix(tag, "zh-hant"):
		return eastAsia{"zh-TW", "Microsoft JhengHei", "Noto Sans CJK TC"}
	}
	return eastAsia{"zh-CN", "Microsoft YaHei", "Noto Sans CJK SC"}
}

// latinOf returns the language of Latin text in a document of this language.
func latinOf(language string) string {
	tag := strings.ToLower(language)
	if tag == "" || strings.HasPrefix(tag, "ja") || strings.HasPrefix(tag, "ko") || strings.HasPrefix(tag, "zh") {
		return "en-US"
	}
	return language
}

func fontTable(language string) string {
	e := eastAsiaOf(language)
	font := func(name, substitute, family, pitch string) string {
		return fmt.Sprintf(`<w:font w:name="%s"><w:altName w:val="%s"/><w:family w:val="%s"/><w:pitch w:val="%s"/></w:font>`, name, substitute, family, pitch)
	}
	return xmlHeader + `<w:fonts ` + word + `>` +
		font("Calibri", "Carlito", "swiss", "variable") +
		font("Consolas", "DejaVu Sans Mono", "modern", "fixed") +
		font("MS Gothic", e.substitute, "modern", "fixed") +
		font(e.font, e.substitute, "swiss", "variable") + `</w:fonts>`
}

func settings(language string) string {
	return xmlHeader + `<w:settings ` + word + `><w:zoom w:percent="100"/><w:defaultTabStop w:val="425"/>` +
		`<w:characterSpacingControl w:val="compressPunctuation"/>` +
		`<w:compat><w:compatSetting w:name="compatibilityMode" w:uri="http://schemas.microsoft.com/office/word" w:val="15"/></w:compat>` +
		fmt.Sprintf(`<w:themeFontLang w:val="%s" w:eastAsia="%s"/>`, attr(latinOf(language)), eastAsiaOf(language).tag) +
		`</w:settings>`
}

// styles defines the styles that people edit to change the look of a document.
func styles(language string) string {
	e := eastAsiaOf(language)
	var b strings.Builder
	b.WriteString(xmlHeader + `<w:styles ` + word + `><w:docDefaults><w:rPrDefault><w:rPr>`)
	fmt.Fprintf(&b, `<w:rFonts w:ascii="Calibri" w:eastAsia="%s" w:hAnsi="Calibri" w:cs="Calibri"/><w:sz w:val="22"/><w:szCs w:val="22"/><w:lang w:val="%s" w:eastAsia="%s" w:bidi="ar-SA"/>`,
		e.font, attr(latinOf(language)), e.tag)
	b.WriteString(`</w:rPr></w:rPrDefault><w:pPrDefault><w:pPr><w:spacing w:after="140" w:line="276" w:lineRule="auto"/></w:pPr></w:pPrDefault></w:docDefaults>`)
	b.WriteString(`<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/><w:qFormat/></w:style>`)
	b.WriteString(`<w:style w:type="character" w:default="1" w:styleId="DefaultText"><w:name w:val="Default Paragraph Font"/><w:uiPriority w:val="1"/><w:semiHidden/></w:style>`)
	b.WriteString(`<w:style w:type="table" w:default="1" w:styleId="NormalTable"><w:name w:val="Normal Table"/><w:uiPriority w:val="99"/><w:semiHidden/>` +
		`<w:tblPr><w:tblInd w:w="0" w:type="dxa"/><w:tblCellMar><w:top w:w="0" w:type="dxa"/><w:left w:w="108" w:type="dxa"/><w:bottom w:w="0" w:type="dxa"/><w:right w:w="108" w:type="dxa"/></w:tblCellMar></w:tblPr></w:style>`)
	b.WriteString(`<w:style w:type="numbering" w:default="1" w:styleId="NoList"><w:name w:val="No List"/><w:uiPriority w:val="99"/><w:semiHidden/></w:style>`)

	style := func(id, name, next, paragraph, run string) {
		fmt.Fprintf(&b, `<w:style w:type="paragraph" w:styleId="%s"><w:name w:val="%s"/><w:basedOn w:val="Normal"/>`, id, name)
		if next != "" {
			fmt.Fprintf(&b, `<w:next w:val="%s"/>`, next)
		}
		b.WriteString(`<w:qFormat/>`)
		if paragraph != "" {
			b.WriteString(`<w:pPr>` + paragraph + `</w:pPr>`)
		}
		if run != "" {
			b.WriteString(`<w:rPr>` + run + `</w:rPr>`)
		}
		b.WriteString(`</w:style>`)
	}
	size := func(halfPoints int) string {
		return fmt.Sprintf(`<w:sz w:val="%d"/><w:szCs w:val="%[1]d"/>`, halfPoints)
	}
	style("Title", "Title", "Normal", `<w:keepNext/><w:spacing w:before="0" w:after="240" w:line="240" w:lineRule="auto"/><w:contextualSpacing/>`, `<w:b/><w:bCs/>`+size(48))
	for i, halfPoints := range []int{36, 30, 26, 24, 22, 22} {
		run := `<w:b/><w:bCs/>`
		if i == 5 {
			run += `<w:color w:val="5A6166"/>`
		}
		style(fmt.Sprintf("Heading%d", i+1), fmt.Sprintf("heading %d", i+1), "Normal",
			fmt.Sprintf(`<w:keepNext/><w:keepLines/><w:spacing w:before="%d" w:after="120" w:line="240" w:lineRule="auto"/><w:outlineLvl w:val="%d"/>`, 360-40*i, i),
			run+size(halfPoints))
	}
	style("ListParagraph", "List Paragraph", "", ``, ``)
	style("Quote", "Quote", "", ``, `<w:color w:val="3F4448"/>`)
	box := func(side string) string {
		return `<w:` + side + ` w:val="single" w:sz="4" w:space="6" w:color="E0DCD4"/>`
	}
	style("Code", "Code", "", `<w:pBdr>`+box("top")+box("left")+box("bottom")+box("right")+`</w:pBdr><w:shd w:val="clear" w:color="auto" w:fill="F6F4EF"/><w:spacing w:after="0" w:line="240" w:lineRule="auto"/>`+
		fmt.Sprintf(`<w:ind w:left="%d" w:right="%[1]d"/>`, codeInset),
		monospaced+`<w:noProof/>`+size(19))
	style("Plain", "Plain Text", "", `<w:spacing w:after="0"/>`, ``)
	style("Cell", "Table Text", "", `<w:spacing w:before="40" w:after="40" w:line="240" w:lineRule="auto"/>`, size(21))
	style("Gap", "Gap", "Normal", `<w:spacing w:before="0" w:after="0" w:line="200" w:lineRule="exact"/>`, size(8))
	style("Rule", "Horizontal Rule", "Normal", `<w:pBdr><w:bottom w:val="single" w:sz="6" w:space="1" w:color="8A8F92"/></w:pBdr><w:spacing w:before="120" w:after="240" w:line="240" w:lineRule="auto"/>`, size(8))
	style("Footer", "footer", "", `<w:spacing w:after="0" w:line="240" w:lineRule="auto"/><w:jc w:val="center"/>`, `<w:color w:val="5A6166"/>`+size(18))

	b.WriteString(`<w:style w:type="character" w:styleId="Hyperlink"><w:name w:val="Hyperlink"/><w:basedOn w:val="DefaultText"/><w:rPr><w:color w:val="0B5A9C"/><w:u w:val="single"/></w:rPr></w:style>`)
	b.WriteString(`<w:style w:type="character" w:customStyle="1" w:styleId="CodeText"><w:name w:val="Code Text"/><w:basedOn w:val="DefaultText"/><w:rPr>` + monospaced + `<w:noProof/><w:shd w:val="clear" w:color="auto" w:fill="F3F1EC"/></w:rPr></w:style>`)
	edge := func(side string) string {
		return `<w:` + side + ` w:val="single" w:sz="4" w:space="0" w:color="C8CDD2"/>`
	}
	b.WriteString(`<w:style w:type="table" w:styleId="Grid"><w:name w:val="Table Grid"/><w:basedOn w:val="NormalTable"/><w:tblPr><w:tblBorders>` +
		edge("top") + edge("left") + edge("bottom") + edge("right") + edge("insideH") + edge("insideV") + `</w:tblBorders></w:tblPr></w:style>`)
	b.WriteString(`</w:styles>`)
	return b.String()
}

// The ids of lists. Bullets and tasks have one each; a numbered list has its
// own, so that it begins with its own number.
const (
	listBullets = 1
	listTasks   = 2
	listFirst   = 3
)

// The abstract numberings that lists are made from.
const (
	bullets = iota
	tasks
	numberedDot
	numberedParen
)

func writeNumbering(w *bufio.Writer, lists []list) error {
	_, _ = w.WriteString(xmlHeader + `<w:numbering ` + word + `>`)
	kinds := []struct{ format, suffix, text string }{
		bullets:       {"bullet", "tab", ""},
		tasks:         {"none", "nothing", ""},
		numberedDot:   {"decimal", "tab", "%%%d."},
		numberedParen: {"decimal", "tab", "%%%d)"},
	}
	for id, k := range kinds {
		fmt.Fprintf(w, `<w:abstractNum w:abstractNumId="%d"><w:multiLevelType w:val="hybridMultilevel"/>`, id)
		for level := range maxLevel + 1 {
			text := k.text
			switch {
			case id == bullets:
				text = []string{"•", "◦", "▪"}[level%3]
			case text != "":
				text = fmt.Sprintf(text, level+1)
			}
			fmt.Fprintf(w, `<w:lvl w:ilvl="%d"><w:start w:val="1"/><w:numFmt w:val="%s"/><w:suff w:val="%s"/><w:lvlText w:val="%s"/><w:lvlJc w:val="left"/><w:pPr><w:ind w:left="%d" w:hanging="%d"/></w:pPr></w:lvl>`,
				level, k.format, k.suffix, text, (level+1)*indentStep, indentStep)
		}
		_, _ = w.WriteString(`</w:abstractNum>`)
	}
	for i, kind := range []int{listBullets: bullets, listTasks: tasks} {
		if i > 0 {
			fmt.Fprintf(w, `<w:num w:numId="%d"><w:abstractNumId w:val="%d"/></w:num>`, i, kind)
		}
	}
	for i, l := range lists {
		fmt.Fprintf(w, `<w:num w:numId="%d"><w:abstractNumId w:val="%d"/><w:lvlOverride w:ilvl="%d"><w:startOverride w:val="%d"/></w:lvlOverride></w:num>`,
			listFirst+i, l.kind, l.level, l.start)
	}
	_, err := w.WriteString(`</w:numbering>`)
	return err
}
