//go:build !linux

package jail

// UserNamespace returns an empty string: this system has no user namespaces.
func UserNamespace() string { return "" }
