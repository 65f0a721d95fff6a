// Package abi implements the canonical ABI of the world in wit/ over a guest's linear memory:
// it lowers values of the host into the guest, and lifts the guest's values.
//
// No other package reads or writes linear memory. Every pointer, length and discriminant from
// a guest is checked here. An invalid one is a *[Fault], which is the guest's failure and
// never the host's.
package abi
