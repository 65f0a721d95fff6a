// Package tool defines the types with which all other packages speak of tools: the part that a
// model sees ([Definition]), the requests of a module ([Manifest], [Capabilities]), one use of
// a tool ([Call]), and its outcome ([Result], with the envelope around every result and every
// failure). An added tool is one that a person has installed; a built-in tool comes with the
// program.
//
// The package runs nothing, decides nothing and reads no file. All data from a module or a
// model is hostile until it has been checked here.
package tool
