// Package markdown renders the answer of a model, which is Markdown and arrives in
// pieces, as rows of a terminal.
//
// A block is a paragraph, a heading, a table or a line of code. Containers hold blocks: a
// container is a quote or an item of a list. A row is finished when no later text can
// change it; the rows of the open block show the text as far as it has arrived.
//
// The text may be hostile, like all text that others wrote. It is made visible before it is
// parsed, and again where parsing has joined characters or decoded one. The colours set here
// are the only escape sequences of a row. Each block is small, however long the answer is, and
// goldmark gets only one block at a time. Content that a renderer for the Web hides is shown:
// HTML, the targets of links, and references. No row begins with two blanks and a character,
// because rows of the program do.
package markdown
