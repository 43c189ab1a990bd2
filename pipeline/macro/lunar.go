// SPDX-License-Identifier: Apache-2.0

package macro

import (
	"fmt"
	"time"
)

const firstLunarYear = 1900

// lunarYears describes the years of the Chinese calendar from 1900 on: bits 0
// to 12 say which months have 30 days (the others 29), bits 13 to 16 which
// month of the row is the leap month (0: none), the rest on which day of the
// Gregorian year the first month begins (0: January 1). The table is what the
// International Components for Unicode compute; see scripts/lunar.
var lunarYears = [...]uint32{
	0x3d16d2, 0x620752, 0x4c0ea5, 0x38b64a, 0x5c064b, 0x440a9b, 0x309556, 0x56056a, 0x400b59, 0x2a5752,
	0x500752, 0x3adb25, 0x600b25, 0x480a4b, 0x32b4ab, 0x5802ad, 0x42056b, 0x2c6b69, 0x520da9, 0x3efd92,
	0x640e92, 0x4c0d25, 0x36da4d, 0x5c0a56, 0x4602b6, 0x2e95b5, 0x5606d4, 0x400ea9, 0x2c5e92, 0x500e92,
	0x3acd26, 0x5e052b, 0x480a57, 0x32b2b6, 0x580b5a, 0x4406d4, 0x2e6ec9, 0x520749, 0x3cf693, 0x620a93,
	0x4c052b, 0x34ca5b, 0x5a0aad, 0x46056a, 0x309b55, 0x560ba4, 0x400b49, 0x2a5a93, 0x500a95, 0x38f52d,
	0x5e0536, 0x480aad, 0x34b5aa, 0x580db2, 0x440da4, 0x2e7d49, 0x540d4a, 0x3d0a95, 0x600a97, 0x4c0556,
	0x36cab5, 0x5a0ad5, 0x4606d2, 0x308ea5, 0x560ea5, 0x40064a, 0x286c97, 0x4e0a9b, 0x3af55a, 0x5e056a,
	0x480b69, 0x34b752, 0x5a0b52, 0x420b25, 0x2c964b, 0x520a4b, 0x3d14ab, 0x6002ad, 0x4a056d, 0x36cb69,
	0x5c0da9, 0x460d92, 0x309d25, 0x560d25, 0x415a4d, 0x640a56, 0x4e02b6, 0x38e5b5, 0x5e06d5, 0x480ea9,
	0x34be92, 0x5a0e92, 0x440d26, 0x2c6a56, 0x500a57, 0x3d14d6, 0x62035a, 0x4a06d5, 0x36aec9, 0x5c0749,
	0x460693, 0x2e952b, 0x54052b, 0x3e0a5b, 0x2a555a, 0x4e056a, 0x38fb55, 0x600ba4, 0x4a0b49, 0x32ba93,
	0x580a95, 0x42052d, 0x2c8a6d, 0x500ab5, 0x3d35aa, 0x6205d2, 0x4c0da5, 0x36dd4a, 0x5c0e4a, 0x460c95,
	0x30952e, 0x540556, 0x3e0ab5, 0x2a55b2, 0x5006d2, 0x38cea5, 0x5e0f25, 0x4a064a, 0x32ac97, 0x5604ab,
	0x40055b, 0x2c6ad6, 0x520b69, 0x3d7752, 0x620b52, 0x4c0b25, 0x36da4b, 0x5a0a4b, 0x4404ab, 0x2ea55b,
	0x5405ad, 0x3e0b6a, 0x2a5b52, 0x500d92, 0x3afd25, 0x5e0d25, 0x480a55, 0x32b4ad, 0x5804b6, 0x4005b5,
	0x2c6daa, 0x520ec9, 0x3f1e92, 0x620e92, 0x4c0d26, 0x36ca56, 0x5a0a57, 0x4404d6, 0x2e86d5, 0x540755,
	0x400749, 0x286e93, 0x4e0693, 0x38f52b, 0x5e052b, 0x460a5b, 0x32b55a, 0x58056a, 0x420b65, 0x2c974a,
	0x520b49, 0x3d1a95, 0x620a95, 0x4a052d, 0x34caad, 0x5a0ab5, 0x4605aa, 0x2e8ba5, 0x540da5, 0x400d4a,
	0x2a7c95, 0x4e0c96, 0x38f94e, 0x5e0556, 0x480ab5, 0x32b5b2, 0x5806d2, 0x420ea5, 0x2e8e4a, 0x50068b,
	0x3b0c97, 0x6004ab, 0x4a055b, 0x34cad6, 0x5a0b6a, 0x460752, 0x309725, 0x540b45, 0x3e0a8b, 0x28549b,
	0x4e04ab,
}

// lunar returns the day of the Chinese calendar at t: the year, the month from
// 1, whether it is a leap month, and the day from 1. ok is false outside of the
// table.
func lunar(t time.Time) (year, month int, leap bool, day int, ok bool) {
	year = t.Year()
	since := t.YearDay() - 1
	if year < firstLunarYear || year >= firstLunarYear+len(lunarYears) {
		return 0, 0, false, 0, false
	}
	row := lunarYears[year-firstLunarYear]
	if since < int(row>>17) {
		if year--; year < firstLunarYear {
			return 0, 0, false, 0, false
		}
		row = lunarYears[year-firstLunarYear]
		since += time.Date(year, time.December, 31, 0, 0, 0, 0, time.UTC).YearDay()
	}
	since -= int(row >> 17)
	second := int(row >> 13 & 15)
	for i := 0; ; i++ {
		length := 29 + int(row>>i&1)
		if since < length {
			month, leap = i+1, second > 0 && i == second
			if second > 0 && i >= second {
				month = i
			}
			return year, month, leap, since + 1, true
		}
		since -= length
	}
}

// lunarDate formats the day of the Chinese calendar.
func lunarDate(t time.Time) (string, error) {
	year, month, leap, day, ok := lunar(t)
	if !ok {
		return "", fmt.Errorf("the Chinese calendar is known from %d to %d", firstLunarYear, firstLunarYear+len(lunarYears)-1)
	}
	cycle := year - 4
	s := nth("甲乙丙丁戊己庚辛壬癸", cycle%10) + nth("子丑寅卯辰巳午未申酉戌亥", cycle%12) + "年（" +
		nth("鼠牛虎兔龙蛇马羊猴鸡狗猪", cycle%12) + "年）"
	if leap {
		s += "闰"
	}
	return s + nth("正二三四五六七八九十冬腊", month-1) + "月" + lunarDay(day), nil
}

func lunarDay(day int) string {
	switch day {
	case 10:
		return "初十"
	case 20:
		return "二十"
	case 30:
		return "三十"
	}
	return nth("初十廿", day/10) + nth("十一二三四五六七八九", day%10)
}

// doubleHour returns the double hour, the first of which begins at 23:00.
func doubleHour(t time.Time) string {
	return nth("子丑寅卯辰巳午未申酉戌亥", (t.Hour()+1)%24/2) + "时"
}

// quarter returns the current quarter of the double hour; "" for the first.
func quarter(t time.Time) string {
	n := ((t.Hour()+1)%2*60 + t.Minute()) / 15
	if n == 0 {
		return ""
	}
	return nth("零一二三四五六七", n) + "刻"
}
