// Package bench is what the benchmarks of this module have in common: figures
// that are compared with a target, a few statistics, and what surrounds a run.
package bench
