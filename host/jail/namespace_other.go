//go:build !linux

package jail

// UserNamespace is empty: this system has no such namespaces.
func UserNamespace() string { return "" }
