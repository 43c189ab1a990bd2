// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"strings"

	"github.com/artelhq/artel/internal/phrase"
)

// clientName returns the browser and the system of a User-Agent (RFC 9110, 10.1.5), such
// as "Chrome on Linux". What names no known browser is returned unchanged.
func clientName(l phrase.Locale, agent string) string {
	browser, system := "", ""
	// Browsers name others that they are compatible with, so the rarer names come first.
	for _, b := range [][2]string{
		{"Edg", "Edge"},
		{"OPR/", "Opera"},
		{"SamsungBrowser/", "Samsung Internet"},
		{"Firefox/", "Firefox"},
		{"FxiOS/", "Firefox"},
		{"CriOS/", "Chrome"},
		{"HeadlessChrome/", "Chrome"},
		{"Chrome/", "Chrome"},
		{"Safari/", "Safari"},
	} {
		if strings.Contains(agent, b[0]) {
			browser = b[1]
			break
		}
	}
	for _, s := range [][2]string{
		{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"}, {"CrOS", "ChromeOS"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"},
	} {
		if strings.Contains(agent, s[0]) {
			system = s[1]
			break
		}
	}
	switch {
	case browser == "":
		return agent
	case system == "":
		return browser
	}
	return l.Say(phrase.PageSessionBrowser, map[string]any{"Browser": browser, "System": system})
}
