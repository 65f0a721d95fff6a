package config

import (
	"fmt"
	"time"
)

// LimitKeys returns the keys that an administrator can cap: those of class
// [Limit], in the order of the sample.
func LimitKeys() []string {
	var names []string
	for i := range table {
		if table[i].class == Limit {
			names = append(names, table[i].Name)
		}
	}
	return names
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
