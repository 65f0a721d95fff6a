package tool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Hint is advice on a failure. It consists of words and actions, in order. An action is data:
// something that only the person who runs the program can do. [Hint.String] returns the hint
// for a model, without commands and flags. [Hint.Render] returns it for a person, with the
// commands and flags of the program at hand.
type Hint []HintPart

// HintPart is words or, if Code is set, an action of a person.
type HintPart struct {
	Words string   `json:"words,omitempty"`
	Code  HintCode `json:"code,omitempty"`
	Key   string   `json:"key,omitempty"` // parameter of the action, see HintCode; may be empty
}

// HintCode names an action that a person can take.
type HintCode string

// The actions, and their keys.
const (
	HintSettings  HintCode = "settings"     // change the user's own settings
	HintAllow     HintCode = "allow"        // add a rule that allows a call in this run; the key is the rule or ""
	HintUndeny    HintCode = "undeny"       // remove a rule that denies calls in this run; the key is the rule
	HintAllowHost HintCode = "allow_host"   // add a rule that allows a host; the key is the rule, or empty
	HintMount     HintCode = "mount"        // let tools see another directory
	HintModule    HintCode = "module"       // look at the module of a call
	HintLarge     HintCode = "large_module" // permit a large module to be compiled
	HintSetSecret HintCode = "set_secret"   // set a secret; the key is its name
	HintConfine   HintCode = "confine"      // list what is missing to confine processes further
	HintGrant     HintCode = "grant"        // give permissions to an added tool; the key is that of GrantHint
)

// Advise returns a hint of words, formatted as by [fmt.Sprintf].
func Advise(format string, args ...any) Hint {
	return Hint{{Words: fmt.Sprintf(format, args...)}}
}

// ActionHint returns a hint of one action.
func ActionHint(code HintCode, key string) Hint { return Hint{{Code: code, Key: key}} }

// And returns the hint followed by others.
func (h Hint) And(more ...Hint) Hint { return slices.Concat(append([]Hint{h}, more...)...) }

// Render returns the hint as text. action returns the text of a part that is an action.
func (h Hint) Render(action func(HintPart) string) string {
	var b strings.Builder
	for _, p := range h {
		if p.Code == "" {
			b.WriteString(p.Words)
		} else {
			b.WriteString(action(p))
		}
	}
	return b.String()
}

// String returns the hint as text for a model, which has no flags and no commands.
func (h Hint) String() string { return h.Render(HintPart.forModel) }

// forModel returns an action as words within a sentence.
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
