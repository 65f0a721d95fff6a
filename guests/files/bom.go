package main

import "bytes"

// bom is the byte order mark that some editors put at the start of UTF-8
// text. It is part of the file but not of its first line.
const bom = "\uFEFF"

func trimBOM(text []byte) []byte { return bytes.TrimPrefix(text, []byte(bom)) }
