// Package fueltest runs the test suites of the WebAssembly specification, which
// lie in the module of wazero, on code that is metered, and compares that with an
// interpreter of our own, package oracle. It is nothing but tests, in a module of
// its own: what they need is not the program's.
//
// The suites were translated to JSON by wast2json: a script is a list of
// commands (instantiate this module, call that function, expect this value)
// beside the modules in binary form. Each script is carried out by the compiler
// and by the interpreter on modules as they are, with metering, and with
// metering and limits. The first proves that these tests read the suites as
// they are meant; the others, that metering changes nothing that a program can
// see, that it counts the same however a program is run, and that an invalid
// module stays one.
package fueltest
