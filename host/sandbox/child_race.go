//go:build race

package sandbox

// raceFactor multiplies a child's time and memory: the race detector needs that much more.
const raceFactor = 12
