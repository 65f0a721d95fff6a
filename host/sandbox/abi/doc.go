// Package abi speaks the canonical ABI of the world in wit/ over a guest's
// linear memory: it lowers what the host hands to the guest and lifts what
// comes back.
//
// It is the only package that reads or writes linear memory. Every pointer,
// length and discriminant that a guest supplies is checked here; one that does
// not hold is a *[Fault], which is the guest's failure and never the host's.
package abi
