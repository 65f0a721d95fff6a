// Package store is about the modules that were added, by their SHA-256, and what they were approved with.
package store
