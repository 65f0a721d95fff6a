// Package bench has the common parts of the benchmarks of this module: the command line,
// rounds in which several ways take turns, figures that are compared with a target, and a
// few statistics.
package bench
