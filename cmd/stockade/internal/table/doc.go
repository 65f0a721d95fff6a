// Package table lays tables out that fit a terminal. A table is rows of cells; a
// cell is visible text. Where the rows are wider than the terminal, the columns
// whose text can be broken become narrower, and their words go on below.
package table
