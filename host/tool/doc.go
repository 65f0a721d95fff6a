// Package tool holds the words that every other package uses to speak of a
// tool: what the model sees of it ([Definition]), what its package asks for
// ([Manifest], [Capabilities]), one use of it ([Call]) and what came of that
// ([Result], with the envelope that wraps every result and every failure).
//
// It runs nothing, decides nothing and reads no file. Everything in it that
// comes from a module or a model is hostile until it has been checked here.
package tool
