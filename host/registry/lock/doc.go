// Package lock is about stockade.lock, the modules of a project.
package lock
