//go:build !race

package sandbox

// raceFactor multiplies the limits of a child.
const raceFactor = 1
