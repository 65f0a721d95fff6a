//go:build race

package sandbox

// raceFactor multiplies the limits of a child: the race detector needs that much more.
const raceFactor = 12
