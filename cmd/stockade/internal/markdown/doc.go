// Package markdown shows the answer of a model, which is Markdown and comes in
// pieces, as rows of a terminal.
//
// A block is a paragraph, a heading, a table, a line of code. Blocks stand in
// containers, which are quotes and items of lists. A row is finished when nothing
// that comes can change it; the rows of the block that is open are shown as the
// text stands.
//
// The text is hostile, as all text of others is: it is made visible before it is
// read, and again where reading it has brought characters together or decoded one,
// and the only escape sequences of a row are the colours that are given here. Each
// block is small, however long the answer is, and goldmark only ever sees
// one. What the text does not show in a renderer for the Web is shown: HTML, where
// a link leads, references. No row begins with two blanks and a character, as
// those of the program do.
package markdown
