package terminal

// Styles: parameters of the escape sequence SGR.
const (
	Bold   = "1"
	Dim    = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
)

// Style returns visible text in a style if color is set.
func Style(color bool, style, text string) string {
	if !color || style == "" || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// SignStyles are the colours of added and removed lines, by their sign.
var SignStyles = map[byte]string{'+': Green, '-': Red}
