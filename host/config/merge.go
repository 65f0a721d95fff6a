package config

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stockade-dev/stockade/host/config/keys"
)

// Warning describes a setting of a project file, or of the environment, that was ignored.
type Warning struct {
	Path      string // "environment" for a variable
	Line      int    // 0 for a variable
	Key       string // for a variable, its name
	Reason    string // reason, with the place where the setting would be accepted; without the key
	Untrusted bool   // set if the setting would be accepted in a trusted file
}

func (w Warning) String() string {
	if w.Line == 0 {
		return fmt.Sprintf("%s: %s is ignored: %s", w.Path, w.Key, w.Reason)
	}
	return fmt.Sprintf("%s:%d: %s is ignored: %s", w.Path, w.Line, w.Key, w.Reason)
}

// Merge applies the user's file, then the project's, then the environment to the defaults.
// Either file can be nil. Settings that a project file or the environment may not make are
// left out and become warnings, in the order of [Config.Keys]. The caller has set
// [File.Trusted] of the project.
//
// env returns the value of a variable, whose name is STOCKADE_ and the key in upper case with
// '_' for '.', such as STOCKADE_MODEL_NAME; an empty variable counts as unset. Lists are
// separated by commas. The error joins those of all variables that do not parse; then the
// Config must not be used.
func Merge(user, project *File, env func(string) string) (Config, []Warning, error) {
	c := Default()
	for k, s := range user.all() {
		c.apply(k, s.value, user.source(s))
	}
	var warnings []Warning
	for k, s := range project.all() {
		if old := k.get(&c); !k.projectMay(old, s.value, project.Trusted) {
			warnings = append(warnings, Warning{
				Path: project.Path, Line: s.line, Key: k.Name, Reason: k.refusal(old, c.Source(k.Name), user), Untrusted: k.class.needsTrust(),
			})
			continue
		}
		value, source := s.value, project.source(s)
		switch old := k.get(&c); {
		case k.class.needsTrust():
			source += ", trusted"
		case k.class == addOnly:
			if before := old.([]string); len(before) > 0 {
				value, source = union(before, value.([]string)), c.Source(k.Name)+", "+source
			}
		}
		c.apply(k, value, source)
	}
	var errs []error
	for i := range table {
		k := &table[i]
		text := env(k.env())
		if text == "" {
			continue
		}
		if k.class.fileOnly() {
			warnings = append(warnings, Warning{Path: "environment", Key: k.env(), Reason: k.fileRefusal(user)})
			continue
		}
		if err := c.Set(k.Name, text, "environment "+k.env()); err != nil {
			errs = append(errs, fmt.Errorf("environment variable %s: %w", k.env(), err))
		}
	}
	return c, warnings, errors.Join(errs...)
}

// union returns the list a, followed by those elements of b that a does not hold.
func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// refusal returns the reason why a project file's value was ignored, with a remedy. old is the
// value that stays, and source its origin.
func (k *key) refusal(old any, source string, user *File) string {
	var why string
	switch k.class {
	case limit:
		why = fmt.Sprintf("a project can only lower it, and it is %s (%s)", keys.Format(old), source)
	case switchOff:
		why = fmt.Sprintf("a project can only switch it off, and it is off (%s)", source)
	case switchOn:
		why = fmt.Sprintf("a project can only switch it on, and it is on (%s)", source)
	case userOnly, private:
		return k.fileRefusal(user)
	default:
		return "you have not trusted this file as it is now; `stockade config trust` shows what it asks for"
	}
	return fmt.Sprintf("%s; set it in %s or with %s", why, ownFile(user), k.env())
}

// fileRefusal returns the reason why a value was ignored that only the user's file may set.
func (k *key) fileRefusal(user *File) string {
	return fmt.Sprintf("only a person decides who is reached and believed, what tools see and which key is used; set %s in %s", k.Name, ownFile(user))
}

func ownFile(user *File) string {
	if user != nil {
		return user.Path
	}
	return "your own agent.toml"
}

func (f *File) source(s setting) string {
	return fmt.Sprintf("%s %s:%d", f.Layer, f.Path, s.line)
}
