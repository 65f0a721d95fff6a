// Package fueltest runs the test suites of the WebAssembly specification, which are part
// of the module of wazero, on metered code, and compares the results with an interpreter
// of our own, package oracle. It has tests only, in a Go module of its own: the program
// does not need their dependencies.
//
// The suites were translated to JSON by wast2json: a script is a list of commands
// (instantiate this module, call that function, expect this value) beside the modules in
// binary form. Each script is executed by the compiler and by the interpreter of wazero,
// on modules without changes, with metering, and with metering and limits. The first run
// proves that these tests read the suites correctly; the others prove that metering
// changes nothing that a program can see, that the count does not depend on the engine,
// and that an invalid module stays invalid.
package fueltest
