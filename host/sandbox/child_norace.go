//go:build !race

package sandbox

// raceFactor is how much more a child may take.
const raceFactor = 1
