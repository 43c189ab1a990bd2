// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/xuri/nfp"
)

// builtInFormats are the number formats that files name by number alone. Those that
// follow the country of the reader are written as ISO dates, with the time if they are
// times in some countries of East Asia and dates in others.
var builtInFormats = map[int]string{
	1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: "$#,##0;-$#,##0", 6: "$#,##0;-$#,##0", 7: "$#,##0.00;-$#,##0.00",
	8: "$#,##0.00;-$#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??", 14: "yyyy-mm-dd",
	15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss",
	22: "yyyy-mm-dd h:mm", 27: "yyyy-mm-dd", 28: "yyyy-mm-dd", 29: "yyyy-mm-dd", 30: "yyyy-mm-dd", 31: "yyyy-mm-dd", 32: "h:mm", 33: "h:mm:ss",
	34: "yyyy-mm-dd h:mm", 35: "yyyy-mm-dd h:mm:ss", 36: "yyyy-mm-dd", 37: "#,##0;-#,##0",
	38: "#,##0;-#,##0", 39: "#,##0.00;-#,##0.00", 40: "#,##0.00;-#,##0.00", 41: "#,##0;-#,##0", 42: "#,##0;-#,##0",
	43: "#,##0.00;-#,##0.00", 44: "#,##0.00;-#,##0.00", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "##0.0E+0",
	49: "@", 50: "yyyy-mm-dd", 51: "yyyy-mm-dd", 52: "yyyy-mm-dd", 53: "yyyy-mm-dd", 54: "yyyy-mm-dd", 55: "yyyy-mm-dd h:mm",
	56: "yyyy-mm-dd h:mm:ss", 57: "yyyy-mm-dd", 58: "yyyy-mm-dd",
}

// maxDigits is the number of significant digits that Excel computes and shows.
const maxDigits = 15

// A decimal is the number 0.digits × 10^exp, exactly. Zero has no digits.
type decimal struct {
	negative bool
	digits   string // without zeros at either end
	exp      int
}

// parseDecimal reads a number of at most maxDigits digits; further ones are rounded
// away. What follows there is an artefact of binary fractions, as in
// 1.0049999999999999, unless the number is whole.
func parseDecimal(s string) (decimal, bool) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) || len(s) > 400 || strings.ContainsAny(s, "xX_pP") {
		return decimal{}, false
	}
	if f == 0 { // or closer to it than any number, at an exponent of any size
		return decimal{}, true
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	d := decimal{negative: strings.HasPrefix(mantissa, "-")}
	left, right, _ := strings.Cut(strings.TrimLeft(mantissa, "+-"), ".")
	e, _ := strconv.Atoi(exponent)
	all := left + right
	d.exp = len(left) + e
	trimmed := strings.TrimLeft(all, "0")
	d.exp -= len(all) - len(trimmed)
	d.digits = strings.TrimRight(trimmed, "0")
	if d.digits == "" {
		return decimal{}, true
	}
	if len(d.digits) > maxDigits && len(d.digits) > d.exp {
		d = d.rounded(maxDigits)
	}
	return d, true
}

// rounded keeps n digits, rounding half away from zero.
func (d decimal) rounded(n int) decimal {
	if n >= len(d.digits) {
		return d
	}
	if n < 0 {
		return decimal{}
	}
	up := d.digits[n] >= '5'
	kept := []byte(d.digits[:n])
	for i := n - 1; up && i >= 0; i-- {
		if up = kept[i] == '9'; up {
			kept[i] = '0'
		} else {
			kept[i]++
		}
	}
	if up {
		kept = append([]byte{'1'}, kept...)
		d.exp++
	}
	if d.digits = strings.TrimRight(string(kept), "0"); d.digits == "" {
		return decimal{}
	}
	return d
}

// at returns the digit whose value is 10^n.
func (d decimal) at(n int) byte {
	if i := d.exp - 1 - n; i >= 0 && i < len(d.digits) {
		return d.digits[i]
	}
	return '0'
}

// String writes the number in full, with an exponent only if it would need more than
// 21 places.
func (d decimal) String() string {
	sign := ""
	if d.negative {
		sign = "-"
	}
	n := len(d.digits)
	switch {
	case n == 0:
		return "0"
	case d.exp > 21 || d.exp < -15:
		s := d.digits[:1]
		if n > 1 {
			s += "." + d.digits[1:]
		}
		exp := strconv.Itoa(d.exp - 1)
		if d.exp > 0 {
			exp = "+" + exp
		}
		return sign + s + "E" + exp
	case d.exp <= 0:
		return sign + "0." + strings.Repeat("0", -d.exp) + d.digits
	case n <= d.exp:
		return sign + d.digits + strings.Repeat("0", d.exp-n)
	default:
		return sign + d.digits[:d.exp] + "." + d.digits[d.exp:]
	}
}

// A numberFormat shows numbers.
type numberFormat struct{ sections []nfp.Section }

// format returns the parsed form of a number format.
func (x *xlsx) format(code string) *numberFormat {
	f := x.parsed[code]
	if f == nil {
		f = newNumberFormat(code)
		if len(x.parsed) < maxStyles {
			x.parsed[code] = f
		}
	}
	return f
}

// maxFormat is the length of a number format in bytes above which its numbers are shown
// as they are stored. Excel has 255 characters at most.
const maxFormat = 512

func newNumberFormat(code string) *numberFormat {
	if code == "" || len(code) > maxFormat {
		return &numberFormat{}
	}
	p := nfp.NumberFormatParser()
	return &numberFormat{p.Parse(code)}
}

// show returns a number as its cell shows it. What is no number, and a number whose
// format is not understood or would hide it, is shown as it is stored.
func (f *numberFormat) show(v string, date1904 bool) string {
	d, ok := parseDecimal(v)
	if !ok {
		return v
	}
	items, signed := f.section(d)
	places := false
	for _, t := range items {
		switch t.TType {
		case nfp.TokenTypeDateTimes, nfp.TokenTypeElapsedDateTimes:
			if places && strings.EqualFold(t.TValue, "e") { // an exponent as E-0
				return d.String()
			}
			if s, ok := showDate(v, items, date1904); ok {
				return s
			}
			return d.String()
		case nfp.TokenTypeFraction, nfp.TokenTypeTextPlaceHolder, nfp.TokenTypeUnknown, nfp.TokenTypeSwitchArgument, nfp.TokenTypeDenominator:
			return d.String()
		case nfp.TokenTypeGeneral, nfp.TokenTypeZeroPlaceHolder, nfp.TokenTypeHashPlaceHolder, nfp.TokenTypeDigitalPlaceHolder:
			places = true
		}
	}
	text := literals(items)
	if !places && strings.TrimSpace(text) == "" {
		return d.String()
	}
	return cmp.Or(strings.TrimSpace(showDigits(d, items, signed)), d.String())
}

// literals joins what a section shows beside the number.
func literals(items []nfp.Token) string {
	var b strings.Builder
	for _, t := range items {
		if t.TType == nfp.TokenTypeLiteral {
			b.WriteString(t.TValue)
		}
	}
	return b.String()
}

// section returns the part of the format for a number. signed says that the part
// shows the sign of a negative number by itself.
func (f *numberFormat) section(d decimal) (items []nfp.Token, signed bool) {
	var numbers []nfp.Section
	conditions := false
	for _, s := range f.sections {
		if s.Type != nfp.TokenSectionText {
			numbers = append(numbers, s)
		}
		conditions = conditions || condition(s) != nil
	}
	zero := d.digits == ""
	chosen := 0
	switch {
	case len(numbers) == 0:
		return nil, false
	case conditions:
		chosen = slices.IndexFunc(numbers, func(s nfp.Section) bool { c := condition(s); return c != nil && holds(d, c) })
		if chosen < 0 { // the others take what is left
			chosen = slices.IndexFunc(numbers, func(s nfp.Section) bool { return condition(s) == nil })
		}
		if chosen < 0 {
			return nil, false
		}
	case d.negative && len(numbers) > 1:
		chosen = 1
	case zero && len(numbers) > 2:
		chosen = 2
	}
	items = numbers[chosen].Items
	if d.negative && chosen > 0 {
		// A section that leaves the sign to a colour would hide it.
		text := literals(items)
		signed = strings.ContainsAny(text, "-−(") || !conditions && strings.ContainsFunc(text, wordRune)
	}
	return items, signed
}

// condition returns the condition of a section, or nil.
func condition(s nfp.Section) *nfp.Token {
	for i, t := range s.Items {
		if t.TType == nfp.TokenTypeCondition && len(t.Parts) == 2 {
			return &s.Items[i]
		}
	}
	return nil
}

func holds(d decimal, c *nfp.Token) bool {
	a, _ := strconv.ParseFloat(d.String(), 64)
	b, err := strconv.ParseFloat(c.Parts[1].Token.TValue, 64)
	if err != nil {
		return false
	}
	switch c.Parts[0].Token.TValue {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	case ">=":
		return a >= b
	case "<>":
		return a != b
	}
	return a == b
}

// A place is where a format shows a digit, or text between digits.
type place struct {
	kind rune // '0', '#', '?', '.', 'E', 'G' for the whole number, or 't'
	text string
}

// A layout is a section as its places.
type layout struct {
	places                []place
	whole, fraction, expo int // placeholders before and after the point, and of the exponent
	grouped, scientific   bool
	percent, scale        int
}

func layoutOf(items []nfp.Token) layout {
	var l layout
	commas := 0
	point := false
	for i, t := range items {
		switch t.TType {
		case nfp.TokenTypeZeroPlaceHolder, nfp.TokenTypeHashPlaceHolder, nfp.TokenTypeDigitalPlaceHolder:
			for _, c := range t.TValue {
				switch {
				case l.scientific:
					l.expo++
					continue
				case point:
					l.fraction++
				default:
					l.whole++
				}
				l.places = append(l.places, place{kind: c})
			}
			l.grouped = l.grouped || commas > 0
			commas = 0
		case nfp.TokenTypeDecimalPoint:
			if !point && !l.scientific {
				l.scale, commas = l.scale+commas, 0
				l.places = append(l.places, place{kind: '.'})
			}
			point = true
		case nfp.TokenTypeThousandsSeparator:
			commas++
		case nfp.TokenTypePercent:
			l.percent++
			l.places = append(l.places, place{'t', t.TValue})
		case nfp.TokenTypeExponential:
			l.scientific = true
			l.places = append(l.places, place{kind: 'E'})
		case nfp.TokenTypeGeneral:
			l.places = append(l.places, place{kind: 'G'})
		case nfp.TokenTypeCurrencyLanguage:
			for _, p := range t.Parts {
				if p.Token.TType == nfp.TokenSubTypeCurrencyString {
					l.places = append(l.places, place{'t', p.Token.TValue})
				}
			}
		case nfp.TokenTypeAlignment:
			if len(l.places) > 0 {
				l.places = append(l.places, place{'t', " "})
			}
		case nfp.TokenTypeLiteral:
			if t.TValue == "," && commas > 0 && items[i-1].TType != nfp.TokenTypeLiteral {
				commas++
				continue
			}
			l.places = append(l.places, place{'t', t.TValue})
		}
	}
	l.scale += commas
	return l
}

// showDigits writes a number into its places.
func showDigits(d decimal, items []nfp.Token, signed bool) string {
	l := layoutOf(items)
	if d.digits != "" {
		d.exp += 2*min(l.percent, 4) - 3*min(l.scale, 6)
	}
	stored := d
	exponent := 0
	if l.scientific {
		step := max(l.whole, 1)
		if d.digits != "" {
			exponent = int(math.Floor(float64(d.exp-1)/float64(step))) * step
		}
		d.exp -= exponent
		if r := d.rounded(d.exp + l.fraction); r.exp > step { // 9.99 became 10
			exponent += step
			d.exp -= step
		}
	}
	d = d.rounded(d.exp + l.fraction)
	var b strings.Builder
	if stored.negative && !signed && (d.digits != "" || l.whole+l.fraction == 0) {
		b.WriteByte('-')
	}
	lead := max(d.exp, 0) // digits before the point
	next, left := max(l.whole, lead)-1, l.whole
	whole := func(optional rune) {
		switch {
		case next < lead || optional == '0':
			b.WriteByte(d.at(next))
			if l.grouped && next > 0 && next%3 == 0 {
				b.WriteByte(',')
			}
		case optional == '?':
			b.WriteByte(' ')
		}
		next--
	}
	last, place := l.lastFraction(d), 0 // of the fraction
	for _, p := range l.places {
		switch {
		case p.kind == 't':
			b.WriteString(p.text)
		case p.kind == 'G':
			b.WriteString(strings.TrimPrefix(stored.String(), "-"))
		case p.kind == 'E':
			b.WriteString(exponentOf(exponent, l.expo))
		case p.kind == '.':
			for next >= 0 {
				whole('0')
			}
			if last > 0 {
				b.WriteByte('.')
			}
			left = -1
		case left >= 0:
			for next >= left {
				whole('0')
			}
			whole(p.kind)
			left--
		default:
			if place++; place <= last {
				b.WriteByte(d.at(-place))
			} else if p.kind == '?' {
				b.WriteByte(' ')
			}
		}
	}
	return b.String()
}

// lastFraction returns how many places of the fraction show a digit.
func (l layout) lastFraction(d decimal) int {
	last, n, point := 0, 0, false
	for _, p := range l.places {
		point = point || p.kind == '.'
		if !point || !strings.ContainsRune("0#?", p.kind) {
			continue
		}
		if n++; p.kind == '0' || d.at(-n) != '0' {
			last = n
		}
	}
	return last
}

func exponentOf(n, width int) string {
	sign := "+"
	if n < 0 {
		sign, n = "-", -n
	}
	s := strconv.Itoa(n)
	return "E" + sign + strings.Repeat("0", max(0, min(width, 10)-len(s))) + s
}
