//go:build !linux && !darwin

package sandbox

// missingLimits names the limits on a child that this system lacks.
const missingLimits = "processor time, memory, size of files"

// wallPerCPU is the lifetime of a child in seconds for each second of processor time that it
// would have on other systems. Here it is the only limit.
const wallPerCPU = 2

func (childJob) limitProcess() error { return nil }
