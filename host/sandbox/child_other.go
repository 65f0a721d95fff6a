//go:build !linux && !darwin

package sandbox

// missingLimits are those that this system does not have.
const missingLimits = "processor time, memory, size of files"

// wallPerCPU is how long a child may live for each second of processor time
// that it may have elsewhere: here it is the only limit.
const wallPerCPU = 2

func (childJob) limitProcess() error { return nil }
