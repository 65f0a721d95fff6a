// Package terminal makes text of others visible, and reads lines from a person.
//
// Visible text shows each character as it is: nothing in it moves the cursor, changes colours,
// reorders letters or stays hidden. A row is visible text that fits into the columns of a
// terminal, however wide the terminal draws its characters. Text of others is text that a
// model, a tool or a file provides. Only this package, and packages that print through it, use
// escape sequences.
package terminal
