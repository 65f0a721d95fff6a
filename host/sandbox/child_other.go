//go:build !linux && !darwin

package sandbox

// missingLimits are those that this system does not have.
const missingLimits = "processor time, memory, size of files"

func (childJob) limitProcess() error { return nil }
