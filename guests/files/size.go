package main

import "fmt"

// humanSize returns a size with a power of 1024 as its unit, such as 1.5 MiB, or 300 B.
func humanSize(bytes int64) string {
	if bytes < 1024 {
		return fmt.Sprintf("%d B", bytes)
	}
	size := float64(bytes)
	unit := ""
	for _, unit = range []string{"KiB", "MiB", "GiB", "TiB"} {
		if size /= 1024; size < 1023.95 {
			break
		}
	}
	return fmt.Sprintf("%.1f %s", size, unit)
}

// count returns a number with its noun: one if n is 1, else many.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
