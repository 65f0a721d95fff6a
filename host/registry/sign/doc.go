// Package sign is about who has signed a module.
package sign
