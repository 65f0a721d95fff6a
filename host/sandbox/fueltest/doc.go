// Package fueltest runs the test suites of the WebAssembly specification, which
// lie in the module of wazero, on modules as they are and on modules with fuel
// metering. It is nothing but tests.
//
// The suites were translated to JSON by wast2json: a file is a list of commands
// (instantiate this module, call that function, expect this value) beside the
// modules in binary form. Every file is carried out by the compiler and by the
// interpreter, on plain and on metered modules. The plain runs prove that these
// tests read the suites as they are meant; the metered runs, that metering
// changes nothing that a program can see.
package fueltest
