// Package form lets one job be built in three forms: as a tool of Stockade, as
// a plug-in of Extism (with the build tag extism), and as a native program that
// reads its arguments as JSON from stdin and writes its result to stdout.
//
// A job is offered by an init function, and its main function calls Main.
package form
