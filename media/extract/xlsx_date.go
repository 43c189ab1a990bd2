// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/xuri/nfp"
)

// showDate writes a number of days as a date or a time. Day 60 is the 29th of February
// 1900 as in Excel, although it did not exist.
func showDate(v string, items []nfp.Token, date1904 bool) (string, bool) {
	days, err := strconv.ParseFloat(v, 64)
	if err != nil || days < 0 || days > 2_958_466 {
		return "", false
	}
	start := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	switch {
	case date1904:
		start = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	case days < 60:
		start = time.Date(1899, 12, 31, 0, 0, 0, 0, time.UTC)
	}
	unit, twelve := time.Second, false
	for i, t := range items {
		if i > 0 && t.TType == nfp.TokenTypeZeroPlaceHolder && items[i-1].TType == nfp.TokenTypeDecimalPoint {
			unit = time.Second / time.Duration(math.Pow10(min(len(t.TValue), 3)))
		}
		twelve = twelve || t.TType == nfp.TokenTypeDateTimes && isAMPM(t.TValue)
	}
	whole := math.Floor(days)
	of := time.Duration(math.Round((days-whole)*float64(24*time.Hour)/float64(unit))) * unit
	at := start.AddDate(0, 0, int(whole)).Add(of)
	leap := !date1904 && whole == 60 // at is the 28th
	total := time.Duration(whole)*24*time.Hour + of
	var b strings.Builder
	before := byte(0) // the part of a date before this one
	for i, t := range items {
		switch t.TType {
		case nfp.TokenTypeLiteral, nfp.TokenTypePercent, nfp.TokenTypeThousandsSeparator:
			b.WriteString(t.TValue)
		case nfp.TokenTypeDecimalPoint:
			b.WriteByte('.')
		case nfp.TokenTypeZeroPlaceHolder:
			if i > 0 && items[i-1].TType == nfp.TokenTypeDecimalPoint {
				b.WriteString(strconv.Itoa(1e9 + at.Nanosecond())[1 : 1+min(len(t.TValue), 3)])
			} else {
				b.WriteString(t.TValue)
			}
		case nfp.TokenTypeElapsedDateTimes:
			before = t.TValue[0] | 0x20
			n := map[byte]float64{'h': total.Hours(), 'm': total.Minutes(), 's': total.Seconds()}[before]
			s := strconv.Itoa(int(n))
			b.WriteString(strings.Repeat("0", max(0, min(len(t.TValue), 10)-len(s))) + s)
		case nfp.TokenTypeDateTimes:
			part := strings.ToLower(t.TValue)
			if isAMPM(part) {
				b.WriteString(halfOfDay(at, t.TValue))
				continue
			}
			minutes := part[0] == 'm' && len(part) <= 2 && (before == 'h' || secondsFollow(items[i+1:]))
			s, ok := datePart(at, part, minutes, twelve)
			if !ok { // of another calendar
				return isoDate(at, leap), true
			}
			if leap && !minutes {
				s = leapPart(part, s)
			}
			b.WriteString(s)
			before = part[0]
		}
	}
	return strings.TrimSpace(b.String()), true
}

// isoDate writes a date, and its time unless that is midnight.
func isoDate(at time.Time, leap bool) string {
	date := at.Format(time.DateOnly)
	if leap {
		date = "1900-02-29"
	}
	if clock := at.Format(time.TimeOnly); clock != "00:00:00" {
		date += " " + clock
	}
	return date
}

// leapPart writes a part of Excel's 29th of February 1900; s is that of the 28th.
func leapPart(part, s string) string {
	switch {
	case part[0] != 'd' && part[0] != 'a':
		return s
	case len(part) <= 2:
		return "29"
	case len(part) == 3:
		return "Wed"
	}
	return "Wednesday"
}

func isAMPM(part string) bool {
	return strings.EqualFold(part, "am/pm") || strings.EqualFold(part, "a/p") || part == "上午/下午"
}

func halfOfDay(at time.Time, part string) string {
	am, pm, _ := strings.Cut(part, "/")
	if at.Hour() < 12 {
		return am
	}
	return pm
}

func secondsFollow(items []nfp.Token) bool {
	for _, t := range items {
		if t.TType == nfp.TokenTypeDateTimes || t.TType == nfp.TokenTypeElapsedDateTimes {
			return t.TValue[0]|0x20 == 's'
		}
	}
	return false
}

// datePart writes one part of a date, in lower case. It fails for those that only
// other calendars have.
func datePart(at time.Time, part string, minutes, twelve bool) (string, bool) {
	n, layout := 0, ""
	switch part[0] {
	case 'y', 'e':
		if layout = "2006"; part[0] == 'y' && len(part) <= 2 {
			layout = "06"
		}
	case 'm':
		switch {
		case minutes:
			n = at.Minute()
		case len(part) == 3:
			layout = "Jan"
		case len(part) == 5:
			return at.Format("Jan")[:1], true
		case len(part) > 3:
			layout = "January"
		default:
			n = int(at.Month())
		}
	case 'd':
		switch len(part) {
		case 1, 2:
			n = at.Day()
		case 3:
			layout = "Mon"
		default:
			layout = "Monday"
		}
	case 'a': // the day of the week in Chinese and Japanese
		if len(part) < 3 {
			return "", false
		}
		if layout = "Monday"; len(part) == 3 {
			layout = "Mon"
		}
	case 'h':
		if n = at.Hour(); twelve {
			n = (n+11)%12 + 1
		}
	case 's':
		n = at.Second()
	default:
		return "", false
	}
	switch {
	case layout != "":
		return at.Format(layout), true
	case len(part) > 1 && n < 10:
		return "0" + strconv.Itoa(n), true
	}
	return strconv.Itoa(n), true
}
