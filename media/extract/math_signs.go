// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// texOf returns signs as LaTeX.
func texOf(s string) string {
	var b strings.Builder
	open := false
	for _, r := range s {
		t := texRune(r)
		if first, _ := utf8.DecodeRuneInString(t); open && wordRune(first) {
			b.WriteByte(' ')
		}
		b.WriteString(t)
		open = len(t) > 2 && t[0] == '\\' && unicode.IsLetter(rune(t[len(t)-1]))
	}
	return b.String()
}

func texRune(r rune) string {
	if r < 0x80 {
		switch r {
		case '{', '}', '$', '%', '#', '&', '_':
			return `\` + string(r)
		case '\\':
			return `\backslash`
		case '^':
			return `\hat{}`
		case '~':
			return `\sim`
		}
		return string(r)
	}
	if t := texSigns[r]; t != "" {
		return t
	}
	switch {
	case r >= 0x2061 && r <= 0x2064, r == 0x200B: // invisible operators
		return ""
	case r >= 0x1D400 && r <= 0x1D6A3:
		plain := norm.NFKC.String(string(r))
		switch (r - 0x1D400) / 52 {
		case 0:
			return `\mathbf{` + plain + "}"
		case 2:
			return `\boldsymbol{` + plain + "}"
		case 3, 4:
			return `\mathcal{` + plain + "}"
		case 5, 7:
			return `\mathfrak{` + plain + "}"
		case 6:
			return `\mathbb{` + plain + "}"
		}
		return plain
	case r >= 0x1D6A4 && r <= 0x1D7FF:
		return texOf(norm.NFKC.String(string(r)))
	case unicode.Is(unicode.Zs, r):
		return " "
	}
	return string(r)
}

// texSigns are the commands of signs beyond ASCII.
var texSigns = map[rune]string{
	'α': `\alpha`, 'β': `\beta`, 'γ': `\gamma`, 'δ': `\delta`, 'ε': `\varepsilon`, 'ϵ': `\epsilon`, 'ζ': `\zeta`, 'η': `\eta`,
	'θ': `\theta`, 'ϑ': `\vartheta`, 'ι': `\iota`, 'κ': `\kappa`, 'λ': `\lambda`, 'μ': `\mu`, 'µ': `\mu`, 'ν': `\nu`, 'ξ': `\xi`,
	'π': `\pi`, 'ϖ': `\varpi`, 'ρ': `\rho`, 'ϱ': `\varrho`, 'σ': `\sigma`, 'ς': `\varsigma`, 'τ': `\tau`, 'υ': `\upsilon`,
	'φ': `\varphi`, 'ϕ': `\phi`, 'χ': `\chi`, 'ψ': `\psi`, 'ω': `\omega`, 'Γ': `\Gamma`, 'Δ': `\Delta`, 'Θ': `\Theta`,
	'Λ': `\Lambda`, 'Ξ': `\Xi`, 'Π': `\Pi`, 'Σ': `\Sigma`, 'Υ': `\Upsilon`, 'Φ': `\Phi`, 'Ψ': `\Psi`, 'Ω': `\Omega`,
	'∑': `\sum`, '∏': `\prod`, '∐': `\coprod`, '∫': `\int`, '∬': `\iint`, '∭': `\iiint`, '∮': `\oint`, '√': `\surd`, '⋃': `\bigcup`,
	'⋂': `\bigcap`, '⋁': `\bigvee`, '⋀': `\bigwedge`, '⨁': `\bigoplus`, '⨂': `\bigotimes`, '∂': `\partial`, '∇': `\nabla`,
	'∞': `\infty`, '∀': `\forall`, '∃': `\exists`, '∄': `\nexists`, '∈': `\in`, '∉': `\notin`, '∋': `\ni`, '∅': `\emptyset`,
	'⊂': `\subset`, '⊃': `\supset`, '⊆': `\subseteq`, '⊇': `\supseteq`, '∪': `\cup`, '∩': `\cap`, '∖': `\setminus`,
	'≤': `\leq`, '≥': `\geq`, '≠': `\neq`, '≈': `\approx`, '≡': `\equiv`, '≅': `\cong`, '∼': `\sim`, '≃': `\simeq`, '∝': `\propto`,
	'≪': `\ll`, '≫': `\gg`, '≺': `\prec`, '≻': `\succ`, '±': `\pm`, '∓': `\mp`, '×': `\times`, '÷': `\div`, '⋅': `\cdot`, '·': `\cdot`,
	'∗': `\ast`, '⋆': `\star`, '∘': `\circ`, '∙': `\bullet`, '⊕': `\oplus`, '⊗': `\otimes`, '⊖': `\ominus`, '−': "-", '∧': `\land`,
	'∨': `\lor`, '¬': `\neg`, '⊢': `\vdash`, '⊨': `\models`, '⊤': `\top`, '⊥': `\perp`, '∥': `\parallel`, '∣': `\mid`, '∠': `\angle`,
	'→': `\to`, '←': `\leftarrow`, '↔': `\leftrightarrow`, '⇒': `\Rightarrow`, '⇐': `\Leftarrow`, '⇔': `\Leftrightarrow`, '↦': `\mapsto`,
	'⟶': `\longrightarrow`, '⟹': `\Longrightarrow`, '⟺': `\Longleftrightarrow`, '↑': `\uparrow`, '↓': `\downarrow`, '⇌': `\rightleftharpoons`,
	'…': `\ldots`, '⋯': `\cdots`, '⋮': `\vdots`, '⋱': `\ddots`, '′': "'", '″': "''", '‴': "'''", '°': `^{\circ}`, 'ℏ': `\hbar`, 'ℓ': `\ell`,
	'ℜ': `\Re`, 'ℑ': `\Im`, 'ℵ': `\aleph`, '℘': `\wp`, 'ℝ': `\mathbb{R}`, 'ℂ': `\mathbb{C}`, 'ℕ': `\mathbb{N}`, 'ℤ': `\mathbb{Z}`,
	'ℚ': `\mathbb{Q}`, 'ℙ': `\mathbb{P}`, 'ℍ': `\mathbb{H}`, 'ℒ': `\mathcal{L}`, 'ℋ': `\mathcal{H}`, 'ℱ': `\mathcal{F}`, 'ℬ': `\mathcal{B}`,
	'ℰ': `\mathcal{E}`, 'ℳ': `\mathcal{M}`, 'ℛ': `\mathcal{R}`, 'ℐ': `\mathcal{I}`, '⟨': `\langle`, '⟩': `\rangle`, '〈': `\langle`,
	'〉': `\rangle`, '⌊': `\lfloor`, '⌋': `\rfloor`, '⌈': `\lceil`, '⌉': `\rceil`, '‖': `\|`, '†': `\dagger`, '∴': `\therefore`,
	'∵': `\because`, '□': `\square`, '◊': `\diamond`, '△': `\triangle`, '\u2003': `\quad `, '\u2001': `\quad `, '\u2002': `\enspace `, '\u2009': `\,`, '\u2005': `\:`, '\u2004': `\;`, '\u200A': "", '\u00A0': `\ `,
}
