package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"strings"
)

// Load returns the load average of the last minute.
func Load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	minute, _, _ := strings.Cut(string(data), " ")
	return minute
}

// Selection returns a function that reports whether a name matches one of the
// comma-separated patterns; an empty list matches everything.
func Selection(patterns string) func(string) bool {
	return func(name string) bool {
		for pattern := range strings.SplitSeq(patterns, ",") {
			if ok, _ := path.Match(pattern, name); ok || patterns == "" {
				return true
			}
		}
		return false
	}
}

// Progress prints a message for the person who waits.
func Progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// WriteJSON writes all measurements to a file, unless its name is empty.
func WriteJSON(file string, results any) error {
	if file == "" {
		return nil
	}
	data, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}
