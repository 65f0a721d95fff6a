// Package hostmod holds the host functions that a guest can import, one file
// for each interface of wit/, and one table of them all.
//
// A host function acts for the [Call] that travels in the context of the
// guest's call; without one, as while a module initialises, every function
// refuses. What a function can reach is decided by the Call's grant and by the
// [Services] behind it; a service that is nil is not granted to anybody.
package hostmod
