//go:build !race

package sandbox

// slow is how much more a child may take.
const slow = 1
