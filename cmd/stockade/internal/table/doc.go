// Package table formats tables that fit a terminal. A table is rows of cells; a cell is
// visible text. If the rows are wider than the terminal, columns whose text can be broken
// become narrower, and their words continue in the next row.
package table
