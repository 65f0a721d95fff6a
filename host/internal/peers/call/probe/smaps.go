//go:build bench

package main

import (
	"fmt"
	"strconv"
	"strings"
)

// field reads a line such as "Anonymous:   12 kB".
func field(text, name string) (int, error) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == name {
			return strconv.Atoi(f[1])
		}
	}
	return 0, fmt.Errorf("there is no line %s in smaps_rollup", name)
}
