// Package source is about the bytes of a module and its signatures, from where a person says they are.
package source
