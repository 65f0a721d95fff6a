package config

import (
	"errors"
	"fmt"
	"time"
)

// LimitKeys returns the keys that an administrator can cap: those of class
// [Limit], in the order of the reference.
func LimitKeys() []string {
	var names []string
	for i := range keys {
		if keys[i].class == Limit {
			names = append(names, keys[i].name)
		}
	}
	return names
}

// Most checks the most that a key of class [Limit] may be, as the TOML decoder
// returns it. The number is in the unit of the key; a duration is in
// nanoseconds, and as text for a person.
func Most(name string, v any) (most int64, text string, err error) {
	k := find(name)
	if k == nil || k.class != Limit {
		return 0, "", errors.New("it is not the key of a limit")
	}
	if v, err = k.kind.fromTOML(v); err != nil {
		return 0, "", err
	}
	if d, ok := v.(time.Duration); ok {
		text = short(d)
	}
	return number(v), text, nil
}

func number(v any) int64 {
	switch v := v.(type) {
	case int:
		return int64(v)
	case time.Duration:
		return int64(v)
	}
	return 0
}

// Cap lowers a key of class [Limit] to most, if it is higher, and says whether
// it was. Source is what [Config.Source] returns for it then.
func (c *Config) Cap(name string, most int64, source string) (bool, error) {
	k := find(name)
	if k == nil || k.class != Limit {
		return false, fmt.Errorf("%q is not the key of a limit", name)
	}
	switch old := k.get(c).(type) {
	case int:
		if int64(old) > most {
			c.apply(k, int(most), source)
			return true, nil
		}
	case time.Duration:
		if int64(old) > most {
			c.apply(k, time.Duration(most), source)
			return true, nil
		}
	}
	return false, nil
}

// DescribeLimit says what values the key of a limit takes, what its default is as
// TOML, and what it is for.
func DescribeLimit(name string) (kind, def, doc string) {
	k := find(name)
	if k == nil {
		return "", "", ""
	}
	c := Default()
	return k.kind.String(), k.kind.format(k.get(&c)), k.doc
}

// Source makes text of a TOML file, and refuses what is too large, too deep for
// anything of ours, or no text.
func Source(path string, data []byte) (string, error) {
	if len(data) > MaxFileBytes {
		return "", &Error{Path: path, What: fmt.Sprintf("it has more than %d bytes", MaxFileBytes)}
	}
	src := trimMark(string(data))
	if line, what := tooDeep(src); line > 0 {
		return "", &Error{Path: path, Line: line, What: what}
	}
	return src, nil
}
