// SPDX-License-Identifier: Apache-2.0

package token

import (
	"math"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
)

// The values assumed for parts without measures.
const (
	unknownSide      = 1024    // pixels
	bytesPerToken    = 4       // of text
	bytesPerPage     = 100_000 // of a PDF
	bytesPerSecAudio = 16_000  // 128 kbit/s
	bytesPerSecVideo = 250_000 // 2 Mbit/s
)

// Media returns the cost in tokens of a part that is sent unchanged to a model
// of this name behind an API of this dialect: "openai", "openai-responses",
// "anthropic" or "gemini". The name decides; if it belongs to no family with
// documented costs, those of the dialect's vendor apply.
//
// A part without measures is estimated by its bytes, an image as one of 1,024
// by 1,024 pixels.
func Media(model, dialect string, m artel.Media) int {
	c := costsOf(bareName(model), dialect)
	switch m.Kind {
	case artel.KindImage:
		return up(c.image(sides(m)))
	case artel.KindAudio:
		return up(c.second * seconds(m, bytesPerSecAudio))
	case artel.KindVideo:
		return up(c.frame * seconds(m, bytesPerSecVideo))
	case artel.KindText:
		return int(m.Size / bytesPerToken)
	}
	pages := m.Pages
	if pages <= 0 {
		pages = int(max(1, (m.Size+bytesPerPage-1)/bytesPerPage))
	}
	return pages * c.page
}

// A costs holds the costs of a family of models.
type costs struct {
	image  func(w, h float64) float64
	page   int     // of a PDF, including its text
	second float64 // of sound
	frame  float64 // of a second of video with its sound
}

// costsOf follows what vendors document, as of late 2026:
//   - Anthropic, "Vision": width × height / 750, after scaling to a longer side
//     of 1,568 pixels and about 1,600 tokens, from version 4.7 on of 2,576 and
//     4,784; "PDF support": 1,500 to 3,000 tokens of text a page and its image.
//   - Google, "Tokens" and "Media resolution": 258 an image that is not larger
//     than 384 pixels, else a tile of 768, and a page; 32 a second of sound, 263
//     of video. From version 3 on 1,120 an image, 560 a page, 70 a frame.
//   - OpenAI, "Images and vision": tiles of 512 pixels, or patches of 32 by a
//     factor; a second of sound is ten tokens.
//   - Alibaba, "Visual understanding": a token for 28 × 28 pixels, 32 × 32 from
//     version 3 on, between 4 and 16,384, and two marks; 25 a second of sound.
//   - Mistral, mistral-common: a token a patch of 28 pixels, within 1,540 (of
//     Pixtral 16 within 1,024), and one a row; 12.5 a second of sound.
//   - Meta, model cards: up to four tiles of 560 pixels and 1,601 tokens; of
//     version 4 up to 16 of 336 and 145, and one for the whole.
//   - xAI, "Image understanding": up to six tiles of 448 pixels and 256 tokens,
//     and one for the whole.
func costsOf(name, dialect string) costs {
	switch {
	case strings.Contains(name, "claude"):
		return anthropic(name)
	case strings.HasPrefix(name, "gemma"):
		return costs{func(_, _ float64) float64 { return 256 }, 258, 32, 263}
	case strings.HasPrefix(name, "gemini"):
		return google(name)
	case strings.HasPrefix(name, "qwen"), strings.HasPrefix(name, "qvq"):
		side := 28.0
		if newer(name, "qwen", 3, 0) || strings.HasPrefix(name, "qwen-") {
			side = 32
		}
		return costs{grid(side), 2_250, 25, 768}
	case strings.HasPrefix(name, "pixtral-12b"):
		return costs{rows(16, 1024), 2_250, 12.5, 263}
	case strings.Contains(name, "stral"), strings.Contains(name, "xtral"): // Ministral, Magistral, Pixtral Large, Voxtral …
		return costs{rows(28, 1540), 2_250, 12.5, 263}
	case newer(name, "llama-", 4, 0), newer(name, "llama", 4, 0):
		return costs{whole(336, 145, 16), 2_250, 32, 263}
	case strings.HasPrefix(name, "llama"):
		return costs{func(w, h float64) float64 { return 1601 * min(4, tiles(w, h, 560)) }, 2_250, 32, 263}
	case strings.HasPrefix(name, "grok"):
		return costs{whole(448, 256, 6), 2_250, 32, 263}
	case dialect == "anthropic":
		return anthropic(name)
	case dialect == "gemini":
		return google(name)
	}
	return openAI(name)
}

func anthropic(name string) costs {
	side, most := 1568.0, 1600.0
	for _, line := range []string{"claude-opus-", "claude-sonnet-", "claude-haiku-"} {
		if newer(name, line, 4, 7) {
			side, most = 2576, 4784
		}
	}
	if strings.Contains(name, "claude-fable") {
		side, most = 2576, 4784
	}
	return costs{func(w, h float64) float64 {
		w, h = fit(w, h, side)
		return min(most, w*h/750)
	}, 2_250, 32, 263}
}

func google(name string) costs {
	if newer(name, "gemini-", 3, 0) {
		return costs{func(_, _ float64) float64 { return 1120 }, 560, 32, 70 + 32}
	}
	return costs{func(w, h float64) float64 {
		if w <= 384 && h <= 384 {
			return 258
		}
		return 258 * tiles(w, h, 768)
	}, 258, 32, 263}
}

func openAI(name string) costs {
	c := costs{second: 10, frame: 263}
	switch {
	case strings.HasPrefix(name, "gpt-4o-mini"):
		c.image = squares(2833, 5667)
	case strings.HasPrefix(name, "o4-mini"):
		c.image = patches(1536, 1.72)
	case strings.HasPrefix(name, "gpt-4.1-mini"), strings.HasPrefix(name, "gpt-5") && strings.Contains(name, "-mini"):
		c.image = patches(1536, 1.62)
	case strings.HasPrefix(name, "gpt-4.1-nano"), strings.HasPrefix(name, "gpt-5") && strings.Contains(name, "-nano"):
		c.image = patches(1536, 2.46)
	case newer(name, "gpt-", 5, 4):
		c.image = patches(2500, 1.2)
	case newer(name, "gpt-", 5, 2):
		c.image = patches(1536, 1.2)
	case strings.HasPrefix(name, "gpt-5"):
		c.image = squares(70, 140)
	case strings.HasPrefix(name, "o1"), strings.HasPrefix(name, "o3"):
		c.image = squares(75, 150)
	case strings.HasPrefix(name, "computer-use"):
		c.image = squares(65, 129)
	default:
		c.image = squares(85, 170)
	}
	c.page = 600 + up(c.image(1224, 1584)) // the text of a page and its image
	return c
}

// squares counts tiles of 512 pixels, after fitting the image into 2,048 by
// 2,048 and scaling the shorter side down to 768.
func squares(base, tile float64) func(w, h float64) float64 {
	return func(w, h float64) float64 {
		w, h = fit(w, h, 2048)
		if short := min(w, h); short > 768 {
			w, h = w*768/short, h*768/short
		}
		return base + tile*tiles(w, h, 512)
	}
}

// patches counts squares of 32 pixels; an image with more than most of them is
// scaled down until its sides are whole multiples.
func patches(most, factor float64) func(w, h float64) float64 {
	return func(w, h float64) float64 {
		n := tiles(w, h, 32)
		if n > most {
			by := math.Sqrt(32 * 32 * most / (w * h))
			across, down := w*by/32, h*by/32
			by = min(math.Floor(across)/across, math.Floor(down)/down)
			n = min(most, tiles(across*by, down*by, 1))
		}
		return n * factor
	}
}

// grid costs a token per square of a side; the sides of the image are rounded
// to multiples.
func grid(side float64) func(w, h float64) float64 {
	return func(w, h float64) float64 {
		return min(16_384, max(4, math.Round(w/side)*math.Round(h/side))) + 2
	}
}

// rows costs a token per square, and one per row of squares.
func rows(side, longest float64) func(w, h float64) float64 {
	return func(w, h float64) float64 {
		w, h = fit(w, h, longest)
		return (up1(w/side) + 1) * up1(h/side)
	}
}

// whole costs the tiles of the image, at most most, and one more for the whole
// image.
func whole(side, tokens, most float64) func(w, h float64) float64 {
	return func(w, h float64) float64 {
		return tokens * (min(most, tiles(w, h, side)) + 1)
	}
}

// newer reports whether the version after begin in name is at least
// major.minor. A date is not a minor version.
func newer(name, begin string, major, minor int) bool {
	_, version, ok := strings.Cut(name, begin)
	if !ok {
		return false
	}
	number := func() int {
		digits := len(version) - len(strings.TrimLeft(version, "0123456789"))
		n, err := strconv.Atoi(version[:digits])
		version = version[digits:]
		if err != nil || n > 99 {
			return -1
		}
		return n
	}
	got := number()
	if got != major || minor == 0 {
		return got >= major
	}
	if version == "" || version[0] != '-' && version[0] != '.' {
		return false
	}
	version = version[1:]
	return number() >= minor
}

// bareName returns the name of a model without its publisher.
func bareName(model string) string {
	name := strings.ToLower(model)
	return name[strings.LastIndexByte(name, '/')+1:]
}

// tiles returns how many squares of a side cover an image.
func tiles(w, h, side float64) float64 { return up1(w/side) * up1(h/side) }

// up1 rounds up to at least 1, ignoring rounding errors of scaling.
func up1(x float64) float64 { return max(1, math.Ceil(x-1e-9)) }

func up(x float64) int { return int(math.Ceil(x - 1e-9)) }

// fit scales w and h down so that neither exceeds side.
func fit(w, h, side float64) (float64, float64) {
	if long := max(w, h); long > side {
		return w * side / long, h * side / long
	}
	return w, h
}

func sides(m artel.Media) (w, h float64) {
	if m.Width <= 0 || m.Height <= 0 {
		return unknownSide, unknownSide
	}
	return float64(m.Width), float64(m.Height)
}

func seconds(m artel.Media, bytesPerSecond int64) float64 {
	if m.Duration > 0 {
		return m.Duration
	}
	return float64(m.Size) / float64(bytesPerSecond)
}
