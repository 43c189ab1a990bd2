// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// builtInFormat returns the number formats that every program knows by number.
func builtInFormat(id int) string {
	switch id {
	case 1:
		return "0"
	case 2:
		return "0.00"
	case 3:
		return "#,##0"
	case 4:
		return "#,##0.00"
	case 5, 6:
		return "$#,##0;-$#,##0"
	case 7, 8:
		return "$#,##0.00;-$#,##0.00"
	case 9:
		return "0%"
	case 10:
		return "0.00%"
	case 11:
		return "0.00E+00"
	case 12:
		return "# ?/?"
	case 13:
		return "# ??/??"
	case 14, 27, 30, 31, 36, 50, 57:
		return "yyyy-mm-dd" // the short date of the reader's country
	case 15:
		return "d-mmm-yy"
	case 16:
		return "d-mmm"
	case 17:
		return "mmm-yy"
	case 18:
		return "h:mm AM/PM"
	case 19:
		return "h:mm:ss AM/PM"
	case 20:
		return "h:mm"
	case 21:
		return "h:mm:ss"
	case 22:
		return "yyyy-mm-dd h:mm"
	case 37, 38:
		return "#,##0;-#,##0"
	case 39, 40:
		return "#,##0.00;-#,##0.00"
	case 41, 42:
		return "#,##0;-#,##0"
	case 43, 44:
		return "#,##0.00;-#,##0.00"
	case 45:
		return "mm:ss"
	case 46:
		return "[h]:mm:ss"
	case 47:
		return "mm:ss.0"
	case 48:
		return "##0.0E+0"
	case 49:
		return "@"
	}
	return ""
}

// formatNumber returns a number as a cell of a format shows it. A format that
// is not understood shows the number as it is.
func formatNumber(v, format string, date1904 bool) string {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return v
	}
	section, negative := pickSection(format, f)
	if section == "" || strings.EqualFold(section, "general") || section == "@" {
		return general(f)
	}
	tokens := formatTokens(section)
	for _, t := range tokens {
		if t.kind == 'd' {
			if s, ok := formatDate(f, tokens, date1904); ok {
				return s
			}
			return general(f)
		}
	}
	if negative {
		f = -f
	}
	return formatDigits(f, tokens)
}

// general writes a number with at most eleven digits that count.
func general(f float64) string {
	if a := math.Abs(f); a != 0 && (a >= 1e15 || a < 1e-9) {
		return strconv.FormatFloat(f, 'G', 6, 64)
	}
	return strconv.FormatFloat(math.Round(f*1e10)/1e10, 'f', -1, 64)
}

// pickSection returns the part of a format that a number takes. negative says
// that the part writes the sign itself.
func pickSection(format string, f float64) (section string, negative bool) {
	var parts []string
	start, quoted := 0, false
	for i := 0; i < len(format); i++ {
		switch {
		case format[i] == '"':
			quoted = !quoted
		case format[i] == '\\' && !quoted:
			i++
		case format[i] == ';' && !quoted:
			parts = append(parts, format[start:i])
			start = i + 1
		}
	}
	parts = append(parts, format[min(start, len(format)):])
	switch {
	case f < 0 && len(parts) > 1:
		return parts[1], true
	case f == 0 && len(parts) > 2:
		return parts[2], false
	}
	return parts[0], false
}

// A formatToken is a piece of a format: literal text ('t'), a place for a
// digit ('0'), the point ('.'), a comma (','), a percent sign ('%'), an
// exponent ('E'), or a part of a date ('d').
type formatToken struct {
	kind byte
	text string
}

func formatTokens(s string) []formatToken {
	var tokens []formatToken
	add := func(kind byte, text string) { tokens = append(tokens, formatToken{kind, text}) }
	for i := 0; i < len(s); {
		c := s[i]
		lower := c | 0x20
		switch {
		case c == '"':
			end := strings.IndexByte(s[i+1:], '"')
			if end < 0 {
				end = len(s) - i - 1
			}
			add('t', s[i+1:i+1+end])
			i += end + 2
		case c == '\\' && i+1 < len(s):
			n := len(string([]rune(s[i+1 : min(len(s), i+5)])[0]))
			add('t', s[i+1:min(len(s), i+1+n)])
			i += 1 + n
		case c == '_' || c == '*': // room for a character, and a filler
			if c == '_' && len(tokens) > 0 {
				add('t', " ")
			}
			i += 2
		case c == '[':
			end := strings.IndexByte(s[i:], ']')
			if end < 0 {
				return tokens
			}
			inner := strings.ToLower(s[i+1 : i+end])
			switch {
			case inner != "" && strings.Trim(inner, "h") == "", inner != "" && strings.Trim(inner, "m") == "", inner != "" && strings.Trim(inner, "s") == "":
				add('d', "["+inner[:1])
			case strings.HasPrefix(inner, "$"): // a currency and a country
				symbol, _, _ := strings.Cut(s[i+2:i+end], "-")
				add('t', symbol)
			}
			i += end + 1
		case strings.HasPrefix(strings.ToUpper(s[i:min(len(s), i+5)]), "AM/PM"):
			add('d', "am")
			i += 5
		case lower == 'y' || lower == 'm' || lower == 'd' || lower == 'h' || lower == 's':
			n := i
			for n < len(s) && s[n]|0x20 == lower {
				n++
			}
			add('d', strings.ToLower(s[i:n]))
			i = n
		case (c == 'E' || c == 'e') && i+1 < len(s) && (s[i+1] == '+' || s[i+1] == '-'):
			add('E', s[i+1:i+2])
			i += 2
		case c == '0' || c == '#' || c == '?':
			add('0', string(c))
			i++
		case c == '.' || c == ',' || c == '%':
			add(c, string(c))
			i++
		case len(s)-i >= 7 && strings.EqualFold(s[i:i+7], "general"):
			add('g', "")
			i += 7
		default:
			add('t', string(c))
			i++
			for i < len(s) && s[i] >= 0x80 && c >= 0x80 { // a whole character
				tokens[len(tokens)-1].text += string(s[i : i+1])
				i++
			}
		}
	}
	return tokens
}

// formatDigits writes a number by its places.
func formatDigits(f float64, tokens []formatToken) string {
	whole, fraction, exponent, percent := 0, 0, -1, 0
	point, fractionBar := false, false
	grouped, scale, general1 := false, 0, false
	lastDigit := -1
	for i, t := range tokens {
		switch t.kind {
		case '0':
			lastDigit = i
			switch {
			case exponent >= 0:
				exponent++
			case point:
				fraction++
			default:
				if t.text == "0" {
					whole++
				}
			}
		case '.':
			point = true
		case 'E':
			exponent = 0
		case '%':
			percent++
		case 'g':
			general1 = true
		case 't':
			fractionBar = fractionBar || t.text == "/" && lastDigit >= 0
		}
	}
	for i, t := range tokens {
		if t.kind == ',' {
			if i > lastDigit {
				scale++
			} else {
				grouped = true
			}
		}
	}
	for range min(percent, 4) {
		f *= 100
	}
	for range min(scale, 6) {
		f /= 1000
	}
	var digits string
	switch {
	case general1, fractionBar:
		digits = general(f)
	case lastDigit < 0:
	case exponent >= 0:
		digits = strconv.FormatFloat(f, 'E', min(fraction, 20), 64)
	default:
		digits = strconv.FormatFloat(f, 'f', min(fraction, 20), 64)
		if neg := strings.HasPrefix(digits, "-"); neg && strings.Trim(digits, "-0.") == "" {
			digits = digits[1:]
		}
		digits = trimOptional(digits, tokens)
		digits = pad(digits, whole, grouped)
	}
	var b strings.Builder
	if strings.HasPrefix(digits, "-") && len(tokens) > 0 && tokens[0].kind == 't' {
		b.WriteByte('-')
		digits = digits[1:]
	}
	written := false
	for _, t := range tokens {
		switch t.kind {
		case 't':
			if !fractionBar || strings.Trim(t.text, "/ ") != "" {
				b.WriteString(t.text)
			}
		case '%':
			b.WriteByte('%')
		case '0', 'g':
			if !written {
				b.WriteString(digits)
				written = true
			}
		}
	}
	return strings.TrimSpace(b.String())
}

// trimOptional drops zeros after the point where the format has "#" or "?".
func trimOptional(digits string, tokens []formatToken) string {
	point, optional := false, 0
	for _, t := range tokens {
		switch {
		case t.kind == '.':
			point = true
		case point && t.kind == '0' && t.text == "0":
			optional = 0
		case point && t.kind == '0':
			optional++
		}
	}
	for ; optional > 0 && strings.Contains(digits, ".") && strings.HasSuffix(digits, "0"); optional-- {
		digits = digits[:len(digits)-1]
	}
	return strings.TrimSuffix(digits, ".")
}

// pad puts zeros before a number and commas between its thousands.
func pad(digits string, whole int, grouped bool) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	left, right, point := strings.Cut(digits, ".")
	if whole == 0 && left == "0" && point {
		left = ""
	}
	if n := min(whole, 40) - len(left); n > 0 {
		left = strings.Repeat("0", n) + left
	}
	if grouped {
		for i := len(left) - 3; i > 0; i -= 3 {
			left = left[:i] + "," + left[i:]
		}
	}
	if point {
		left += "." + right
	}
	return sign + left
}

// formatDate writes a number of days as a date or a time. The day 60 of Excel
// is one that never was.
func formatDate(days float64, tokens []formatToken, date1904 bool) (string, bool) {
	if days < 0 || days > 2958466 {
		return "", false
	}
	start := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	switch {
	case date1904:
		start = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	case days < 60:
		start = time.Date(1899, 12, 31, 0, 0, 0, 0, time.UTC)
	}
	whole := math.Floor(days)
	unit := time.Second
	for i, t := range tokens {
		if t.kind == '.' && i+1 < len(tokens) && tokens[i+1].kind == '0' {
			unit = time.Millisecond
		}
	}
	of := time.Duration(math.Round((days-whole)*float64(24*time.Hour)/float64(unit))) * unit
	at := start.AddDate(0, 0, int(whole)).Add(of)
	total := time.Duration(whole)*24*time.Hour + of
	twelve := false
	for _, t := range tokens {
		twelve = twelve || t.kind == 'd' && t.text == "am"
	}
	var b strings.Builder
	before := byte(0) // the part of a date that was written last
	fraction := false
	for i, t := range tokens {
		switch t.kind {
		case 't', ',', '%':
			b.WriteString(t.text)
		case '.':
			b.WriteByte('.')
			fraction = true
		case '0':
			if fraction {
				b.WriteString(strconv.Itoa(at.Nanosecond() / 1e8))
				fraction = false
			}
		case 'd':
			minutes := t.text[0] == 'm' && (before == 'h' || followedBySeconds(tokens[i+1:]))
			b.WriteString(datePart(at, total, t.text, minutes, twelve))
			if before = t.text[0]; before == '[' {
				before = t.text[1]
			}
		}
	}
	return strings.TrimSpace(b.String()), true
}

func followedBySeconds(tokens []formatToken) bool {
	for _, t := range tokens {
		if t.kind == 'd' {
			return t.text[0] == 's' || t.text == "[s"
		}
	}
	return false
}

func datePart(at time.Time, total time.Duration, part string, minutes, twelve bool) string {
	two := func(n int) string {
		if len(part) > 1 && n < 10 {
			return "0" + strconv.Itoa(n)
		}
		return strconv.Itoa(n)
	}
	switch part[0] {
	case '[':
		switch part[1] {
		case 'h':
			return strconv.Itoa(int(total.Hours()))
		case 'm':
			return strconv.Itoa(int(total.Minutes()))
		}
		return strconv.Itoa(int(total.Seconds()))
	case 'a':
		return at.Format("PM")
	case 'y':
		if len(part) <= 2 {
			return at.Format("06")
		}
		return at.Format("2006")
	case 'm':
		switch {
		case minutes:
			return two(at.Minute())
		case len(part) == 3:
			return at.Format("Jan")
		case len(part) == 4:
			return at.Format("January")
		case len(part) > 4:
			return at.Format("Jan")[:1]
		}
		return two(int(at.Month()))
	case 'd':
		switch len(part) {
		case 1, 2:
			return two(at.Day())
		case 3:
			return at.Format("Mon")
		}
		return at.Format("Monday")
	case 'h':
		h := at.Hour()
		if twelve {
			h = (h+11)%12 + 1
		}
		return two(h)
	case 's':
		return two(at.Second())
	}
	return ""
}
