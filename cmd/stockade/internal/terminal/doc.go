// Package terminal is how the program shows text that others have written, and
// how it reads lines from a person.
//
// Visible text is text in which everything shows as what it is: nothing in it
// moves the cursor, changes colours, reorders letters or stays out of sight. A
// row is visible text that fits into the columns of a terminal, whatever width
// the terminal gives to its characters. Only this package and who prints
// through it know of escape sequences.
package terminal
