// Package hostmod holds the host functions that a guest can import, one file for each
// interface of wit/, and a table of all of them.
//
// A host function acts in the [World] that it finds in the context of the guest's call.
// Without a World, as while a module initialises, every function refuses, except for those of
// digest, which only compute. The World's grant and its services decide what a function can
// reach; a nil service is granted to nobody. Package services defines the failures of
// services; this package maps them to the cases of the WIT errors.
package hostmod
