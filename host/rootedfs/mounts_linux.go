package rootedfs

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// HoldsMountPoint reports whether a file system is mounted somewhere below dir. It returns
// true if it cannot find that out.
func HoldsMountPoint(dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return true
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(table)) {
		// fields: id, parent, device, root, mount point, …
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		if point := unescape(fields[4]); point != real && strings.HasPrefix(point, strings.TrimSuffix(real, "/")+"/") {
			return true
		}
	}
	return false
}

// unescape decodes the octal escapes of white space in the mount table.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
