// Package trust is about trust.toml: which keys sign for which publisher.
package trust
