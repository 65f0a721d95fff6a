//go:build race

package sandbox

// slow is how much more a child may take: the race detector needs that much.
const slow = 12
