package tool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Hint is what can be done about something: words, and among them, as data, what
// only the person who runs the program can do with it. [Hint.String] puts it into
// words for a model; who shows a hint to a person fills in, with [Hint.Render], the
// commands and flags that this person has. Nobody else is told of those.
type Hint []HintPart

// HintPart is words, or what a person can do.
type HintPart struct {
	Words string   `json:"words,omitempty"`
	Code  HintCode `json:"code,omitempty"`
	Key   string   `json:"key,omitempty"` // see the code
}

// HintCode names what a person can do.
type HintCode string

// The codes, and what the key of each is.
const (
	HintSettings  HintCode = "settings"     // what nobody has set yet is set there
	HintAllow     HintCode = "allow"        // a rule that allows a call, for this run; the key is the rule, or empty
	HintUndeny    HintCode = "undeny"       // a rule that denies for this run; the key is the rule
	HintAllowHost HintCode = "allow_host"   // a rule of the network; the key is the rule, or empty
	HintMount     HintCode = "mount"        // a directory that tools are shown
	HintModule    HintCode = "module"       // to look at the module of a call
	HintLarge     HintCode = "large_module" // to have a large module compiled
	HintSetSecret HintCode = "set_secret"   // to set a secret; the key is its name
	HintConfine   HintCode = "confine"      // to see what would confine processes further
	HintGrant     HintCode = "grant"        // to give something to a tool that was added; the key is as of [GrantHint]
)

// Advise makes a hint of words, in the form of fmt.Sprintf.
func Advise(format string, args ...any) Hint {
	return Hint{{Words: fmt.Sprintf(format, args...)}}
}

// ActionHint makes a hint of what a person can do.
func ActionHint(code HintCode, key string) Hint { return Hint{{Code: code, Key: key}} }

// And returns the hint with others behind it.
func (h Hint) And(more ...Hint) Hint { return slices.Concat(append([]Hint{h}, more...)...) }

// Render puts the hint into words; own has them for what a person can do.
func (h Hint) Render(own func(HintPart) string) string {
	var b strings.Builder
	for _, p := range h {
		if p.Code == "" {
			b.WriteString(p.Words)
		} else {
			b.WriteString(own(p))
		}
	}
	return b.String()
}

// String is the hint as a model reads it, who has neither flags nor commands.
func (h Hint) String() string { return h.Render(HintPart.forModel) }

func (p HintPart) forModel() string {
	switch p.Code {
	case HintSettings:
		return "the settings"
	case HintAllow:
		if p.Key == "" {
			return "a rule of this run"
		}
		return "the rule " + strconv.Quote(p.Key)
	case HintUndeny:
		return "the denial of " + strconv.Quote(p.Key) + " of this run"
	case HintAllowHost:
		if p.Key == "" {
			return "a rule of the network"
		}
		return "the rule " + strconv.Quote(p.Key) + " of the network"
	case HintMount:
		return "a mount"
	case HintModule:
		return "the person can look at what the module is and asks for"
	case HintLarge:
		return "the person can have it compiled all the same"
	case HintSetSecret:
		return "the person can set it"
	case HintConfine:
		return "the person can see what is missing"
	case HintGrant:
		return "the person can give it to the tool"
	}
	return ""
}
