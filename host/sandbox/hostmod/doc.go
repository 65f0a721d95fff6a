// Package hostmod holds the host functions that a guest can import, one file
// for each interface of wit/, and one table of them all.
//
// A host function acts in the [World] that travels in the context of the guest's
// call; without one, as while a module initialises, every function refuses but for
// those of digest, which reach nothing and compute what the guest could. What
// a function can reach is decided by the world's grant and by the services behind
// it; one that is nil is granted to nobody. How a service fails is said in package
// effect, and which case of the WIT error that is, here.
package hostmod
