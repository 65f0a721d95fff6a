// Package bench is what the benchmarks of this module have in common: the command line,
// rounds in which several ways take turns, figures that are compared with a target, and
// a few statistics.
package bench
