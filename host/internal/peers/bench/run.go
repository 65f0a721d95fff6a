package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"strings"
)

// Load is the load average of the last minute.
func Load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	minute, _, _ := strings.Cut(string(data), " ")
	return minute
}

// Selection tells whether a name is among comma-separated patterns; without
// any, it is.
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

// Progress tells the person who waits.
func Progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// WriteJSON writes everything that was measured to a file, if that has a name.
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
