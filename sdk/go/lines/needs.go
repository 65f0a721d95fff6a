package lines

import (
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxNeedles limits the number of texts that are searched for together: the search for more
// would take longer than it saves. An alternation with more texts provides none.
const maxNeedles = 8

// requiredText is a text that every match contains, in any case if fold is set.
type requiredText struct {
	text string
	fold bool
}

// findNeedles returns texts such that every match contains at least one text of the list; nil:
// no such texts are known. whole reports whether each occurrence of the only text is a match.
func findNeedles(re *syntax.Regexp) (_ []needle, whole bool) {
	best := requiredTexts(re)
	if best == nil {
		return nil, false
	}
	out := make([]needle, len(best))
	for i, n := range best {
		out[i] = newNeedle(n)
	}
	return out, re.Op == syntax.OpLiteral && re.Flags&syntax.FoldCase == 0 && best[0].text == string(re.Rune)
}

// requiredTexts returns the rarest set of texts for [findNeedles]; nil: none is known.
func requiredTexts(re *syntax.Regexp) []requiredText {
	switch re.Op {
	case syntax.OpLiteral:
		return bestPiece(literal(re))
	case syntax.OpCapture, syntax.OpPlus:
		return requiredTexts(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return requiredTexts(re.Sub[0])
		}
	case syntax.OpAlternate:
		var all []requiredText
		for _, sub := range re.Sub {
			some := requiredTexts(sub)
			if some == nil || len(all)+len(some) > maxNeedles {
				return nil
			}
			all = append(all, some...)
		}
		return all
	case syntax.OpConcat:
		var best []requiredText
		var run requiredText // consecutive literals
		consider := func(set []requiredText) {
			if set != nil && (best == nil || rarity(set) > rarity(best)) {
				best = set
			}
		}
		for _, sub := range re.Sub {
			for sub.Op == syntax.OpCapture {
				sub = sub.Sub[0]
			}
			if sub.Op == syntax.OpLiteral {
				next := literal(sub)
				run = requiredText{run.text + next.text, run.fold || next.fold}
				continue
			}
			consider(bestPiece(run))
			run = requiredText{}
			consider(requiredTexts(sub))
		}
		consider(bestPiece(run))
		return best
	}
	return nil
}

func literal(re *syntax.Regexp) requiredText {
	return requiredText{string(re.Rune), re.Flags&syntax.FoldCase != 0}
}

// bestPiece returns the rarest part of a text that can be searched for byte by byte. It splits
// the text at U+FFFD, which stands for bytes that are not UTF-8. If case is ignored, it also
// splits at k, s and all characters beyond ASCII, because their cases differ in more bytes.
func bestPiece(n requiredText) []requiredText {
	var best []requiredText
	pieces := strings.FieldsFunc(n.text, func(r rune) bool {
		return r == utf8.RuneError || n.fold && (r >= utf8.RuneSelf || unicode.ToLower(r) == 'k' || unicode.ToLower(r) == 's')
	})
	for _, p := range pieces {
		if n.fold {
			p = strings.ToLower(p)
		}
		if set := []requiredText{{p, n.fold}}; best == nil || rarity(set) > rarity(best) {
			best = set
		}
	}
	return best
}

// rarity estimates the rarity of a set of texts: about the logarithm to base 2 of the number
// of bytes for each occurrence of a text of the set.
func rarity(set []requiredText) int {
	least := 0
	for i, n := range set {
		bits := 0
		for j := range len(n.text) {
			bits += rareness(n.text[j])
		}
		if i == 0 || bits < least {
			least = bits
		}
	}
	return least - len(set)/2
}

// byFrequency holds the bytes of source text, the most frequent first.
const byFrequency = " etnaroislcdup\tm.=fh\n,g(\")yb:v/_T{}0S*CE1wIAR-NxkPFLOMD[2]B8;U'34Vq5"

var rank [256]int

func init() {
	for i := range rank {
		rank[i] = len(byFrequency)
	}
	for i := range len(byFrequency) {
		rank[byFrequency[i]] = i
	}
}

func rareness(b byte) int {
	switch r := rank[b]; {
	case r < 8:
		return 4
	case r < 20:
		return 5
	case r < 36:
		return 7
	case r < len(byFrequency):
		return 9
	}
	return 11
}
