package jail

import (
	"os"
	"slices"
	"strings"
)

// systemIDs is the map of user IDs outside of all user namespaces, see user_namespaces(7).
var systemIDs = []string{"0", "0", "4294967295"}

// UserNamespace returns the map of user IDs of this process as one line, in the form of
// /proc/self/uid_map, with at most ten ranges; "": it is the system's map; "unknown": it cannot
// be read. The maker of another user namespace may have given this program another root
// directory, and so another policy. Rootless containers have such a map, too.
func UserNamespace() string {
	data, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return "unknown"
	}
	ids := strings.Fields(string(data))
	if slices.Equal(ids, systemIDs) {
		return ""
	}
	return strings.Join(ids[:min(len(ids), 30)], " ") // ten ranges
}
